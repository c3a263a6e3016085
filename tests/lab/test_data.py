"""Every reader finds exactly what lies in its true format, and refuses what cannot be right with file and line."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from incdsi.documents import Document
from incdsi.errors import InvalidFile
from incdsi_lab.collection import Collection
from incdsi_lab.data import (
    natural_questions,
    read_beir,
    read_jsonl,
    read_msmarco,
    read_natural_questions,
    read_released,
)
from incdsi_lab.splits import split
from tests.lab import data_samples as samples
from tests.lab.data_samples import COUNT, body, question, title, write_jsonl, write_text

SHARED = Path(__file__).parent.parent.parent.parent / "shared" / "data"


def triples(collection: Collection) -> list[tuple[str, str, str, str]]:
    return [(query.id, query.text, query.document_id, query.split) for query in collection.queries]


def append(path: Path, row: object) -> int:
    """Add a line, a JSON value or a text; its number."""
    text = path.read_text()
    write_text(path, text + (row if isinstance(row, str) else json.dumps(row)) + "\n")
    return text.count("\n") + 1


def refused(read: Callable[[], object], words: str) -> tuple[str, int | None]:
    """The file and line that are named when it is refused with these words."""
    with pytest.raises(InvalidFile, match=re.escape(words)) as found:
        read()
    return str(found.value.path), found.value.line


class TestOurs:
    def test_it_is_read_exactly(self, tmp_path: Path) -> None:
        found = read_jsonl(samples.ours(tmp_path / "made"))
        assert found.name == "made"
        assert [(d.id, d.title, d.text) for d in found.documents] == [
            (f"d{i}", title(i), body(i)) for i in range(COUNT)
        ]
        assert triples(found) == [
            (f"{part}:{k}:{i}", question(i, part), f"d{i}", part)
            for i in range(COUNT)
            for part, k in (("train", 0), ("train", 1), ("val", 2), ("test", 3))
        ]

    @pytest.mark.parametrize(
        ("file", "row", "words"),
        [
            ("docs.jsonl", {"id": "d0", "text": "again"}, "document 'd0' again"),
            ("docs.jsonl", {"id": "d99"}, "no text, title or queries"),
            ("docs.jsonl", "{", "not valid JSON"),
            ("queries.jsonl", {"id": "q", "text": "w", "doc_id": "gone", "split": "test"}, "unknown document 'gone'"),
            ("queries.jsonl", {"id": "q", "text": "w", "split": "test"}, "the field 'doc_id'"),
            ("queries.jsonl", {"id": "q", "text": "w", "doc_id": "d1", "split": "dev"}, "not 'dev'"),
            ("queries.jsonl", {"id": "q", "text": " ", "doc_id": "d1", "split": "test"}, "the field 'text'"),
            (
                "queries.jsonl",
                {"id": "train:0:0", "text": "w", "doc_id": "d1", "split": "test"},
                "again; ids must be unique",
            ),
        ],
    )
    def test_a_bad_line_is_refused(self, tmp_path: Path, file: str, row: object, words: str) -> None:
        samples.ours(tmp_path)
        for name in ("docs", "queries"):
            packed = tmp_path / f"{name}.jsonl.gz"
            write_text(tmp_path / f"{name}.jsonl", gzip.decompress(packed.read_bytes()).decode())
            packed.unlink()
        line = append(tmp_path / file, row)
        assert refused(lambda: read_jsonl(tmp_path), words) == (str(tmp_path / file), line)

    def test_an_empty_split_is_refused(self, tmp_path: Path) -> None:
        samples.ours(tmp_path)
        rows = ({"id": f"q{i}", "text": "w", "doc_id": f"d{i}", "split": "train"} for i in range(3))
        queries = write_jsonl(tmp_path / "queries.jsonl.gz", rows)
        assert refused(lambda: read_jsonl(tmp_path), "no query in split 'test'") == (str(queries), None)

    def test_a_folder_without_the_files_is_refused(self, tmp_path: Path) -> None:
        assert refused(lambda: read_jsonl(tmp_path), "no docs.jsonl in this folder") == (str(tmp_path), None)

    @pytest.mark.skipif(not SHARED.is_dir(), reason="the real sets are not at hand")
    def test_a_real_set_is_read_whole(self) -> None:
        found = read_jsonl(SHARED / "clinc150")
        assert len(found.documents) == 150
        assert Counter(query.split for query in found.queries) == {"train": 15000, "val": 3000, "test": 4500}


class TestBeir:
    def test_it_is_read_exactly(self, tmp_path: Path) -> None:
        found = read_beir(samples.beir(tmp_path))
        assert [(d.id, d.title, d.text) for d in found.documents] == [
            (f"d{i}", title(i), body(i)) for i in range(COUNT)
        ]
        expected = []
        for file, part in (("train", "train"), ("dev", "val"), ("test", "test")):
            expected += [(f"{file}{i}", question(i, file), f"d{i}", part) for i in range(COUNT)]
            expected.append((f"{file}0+2", question(0, file), "d1", part))  # a second document, and none with score 0
        assert triples(found) == expected

    def test_without_dev_there_is_no_val(self, tmp_path: Path) -> None:
        (samples.beir(tmp_path) / "qrels" / "dev.tsv").unlink()
        found = read_beir(tmp_path)
        assert not found.of("val")
        parts = split(found, seed=0)
        assert len(parts.val) == round(0.2 * (COUNT + 1))

    @pytest.mark.parametrize(
        ("file", "row", "words"),
        [
            ("corpus.jsonl", {"_id": "d3", "title": "", "text": "again"}, "document 'd3' again"),
            ("queries.jsonl", {"_id": "dev3", "text": "again"}, "query 'dev3' again"),
            ("qrels/test.tsv", "test1\tgone\t1", "unknown document 'gone'"),
            ("qrels/test.tsv", "nobody\td1\t1", "unknown query 'nobody'"),
            ("qrels/dev.tsv", "dev1\td1\tmuch", "the score must be a number, not 'much'"),
            ("qrels/train.tsv", "train1\td1", "expected 3 columns"),
        ],
    )
    def test_a_bad_line_is_refused(self, tmp_path: Path, file: str, row: object, words: str) -> None:
        line = append(samples.beir(tmp_path) / file, row)
        assert refused(lambda: read_beir(tmp_path), words) == (str(tmp_path / file), line)

    def test_an_empty_split_is_refused(self, tmp_path: Path) -> None:
        path = write_text(samples.beir(tmp_path) / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n")
        assert refused(lambda: read_beir(tmp_path), "no judgement above zero") == (str(path), None)
        path.unlink()
        assert refused(lambda: read_beir(tmp_path), "no test.tsv in this folder") == (str(path.parent), None)


class TestNaturalQuestions:
    def test_pages_are_read_once_and_without_markup(self, tmp_path: Path) -> None:
        found = read_natural_questions(samples.natural_questions(tmp_path))
        assert [(d.id, d.title) for d in found.documents] == [
            (title(i).replace(" ", "_"), title(i)) for i in range(COUNT)
        ]
        assert found.documents[0].text == (
            "River no. 0 The river called number 0 ( est . 1800 ) lies by the sea . 5 < 7"
        )
        assert found.documents[31].text == (
            "Quarry no. 31 The quarry called number 31 ( est . 1831 ) lies by the sea . 5 < 7"
        )

    def test_train_questions_train_and_dev_questions_test(self, tmp_path: Path) -> None:
        found = read_natural_questions(samples.natural_questions(tmp_path))
        page = [document.id for document in found.documents]
        train = [(str(1000 + n), question(i, "train"), page[i], "train") for n, i in enumerate([*range(28), 3, 7])]
        test = [(str(5000 + n), question(i, "dev"), page[i], "test") for n, i in enumerate(range(24, COUNT))]
        assert triples(found) == train + test
        parts = split(found, seed=0)
        assert (len(parts.train), len(parts.val), len(parts.test)) == (24, 6, 8)

    def test_long_pages_are_cut(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(natural_questions, "WORDS", 4)
        found = read_natural_questions(samples.natural_questions(tmp_path))
        assert found.documents[0].text == "River no. 0 The"

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"example_id": 5000}, "query '5000' again"),
            ({"document_url": "https://en.wikipedia.org/"}, "is not the address of a page"),
            ({"document_url": None}, "the field 'document_url'"),
            ({"question_text": ""}, "the field 'question_text'"),
            (
                {"document_tokens": None, "document_url": "https://x.org/wiki/New"},
                "neither document_text nor",
            ),
        ],
    )
    def test_a_bad_line_is_refused(self, tmp_path: Path, change: dict[str, object], words: str) -> None:
        samples.natural_questions(tmp_path)
        rows = [samples.nq_row(1, "dev", 5000), {**samples.nq_row(2, "dev", 5001), **change}]
        (tmp_path / "v1.0-simplified_nq-dev-all.jsonl.gz").unlink()
        path = write_jsonl(tmp_path / "nq-dev.jsonl", rows)
        assert refused(lambda: read_natural_questions(tmp_path), words) == (str(path), 2)

    def test_a_missing_or_empty_file_is_refused(self, tmp_path: Path) -> None:
        samples.natural_questions(tmp_path)
        write_text(tmp_path / "v1.0-simplified_nq-dev-all.jsonl.gz", "")
        assert refused(lambda: read_natural_questions(tmp_path), "no query in split 'test'") == (
            str(tmp_path),
            None,
        )
        (tmp_path / "v1.0-simplified_nq-dev-all.jsonl.gz").unlink()
        assert refused(lambda: read_natural_questions(tmp_path), "no file *dev*.jsonl*") == (
            str(tmp_path),
            None,
        )


class TestMSMarco:
    @pytest.fixture
    def registered(self, tmp_path: Path) -> tuple[str, str]:
        """The sample behind ir-datasets' own handlers of MS MARCO documents, under names of its own."""
        ir_datasets = pytest.importorskip("ir_datasets")
        from ir_datasets.datasets.base import Dataset
        from ir_datasets.datasets.msmarco_document import QRELS_DEFS, MsMarcoTrecDocs
        from ir_datasets.formats import TrecQrels, TsvQueries
        from ir_datasets.util import GzipExtract, LocalDownload

        folder = samples.msmarco(tmp_path)

        def local(name: str) -> GzipExtract:
            return GzipExtract(LocalDownload(folder / name))

        names = tuple(f"made-{tmp_path.name}/{part}" for part in ("train", "dev"))
        for name in names:
            part = name.rpartition("/")[2]
            dataset = Dataset(
                MsMarcoTrecDocs(local("docs.trec.gz")),
                TsvQueries(local(f"{part}-queries.tsv.gz"), namespace="msmarco", lang="en"),
                TrecQrels(local(f"{part}-qrels.tsv.gz"), QRELS_DEFS),
            )
            ir_datasets.registry.register(name, dataset)
        return names[0], names[1]

    def test_documents_with_queries_are_read_exactly(self, registered: tuple[str, str]) -> None:
        found = read_msmarco(*registered)
        assert [(d.id, d.title, d.text.strip(), d.metadata["url"]) for d in found.documents] == [
            (f"D{i}", title(i), f"{body(i)}\nSecond line.", f"https://example.org/{i}") for i in range(28)
        ]

    def test_queries_and_parts_are_the_official_ones(self, registered: tuple[str, str]) -> None:
        found = read_msmarco(*registered)
        train = [(str(100 + i), question(i, "train"), f"D{i}", "train") for i in range(24)]
        test = [(str(300 + i), question(i, "dev"), f"D{i}", "test") for i in range(20, 28)]
        assert triples(found) == [*train, *test, ("320+2", question(20, "dev"), "D1", "test")]

    @pytest.mark.parametrize(
        ("row", "words"), [("900 0 D1 1", "unknown query '900'"), ("100 0 D99 1", "unknown document 'D99'")]
    )
    def test_a_bad_judgement_is_refused(
        self, tmp_path: Path, registered: tuple[str, str], row: str, words: str
    ) -> None:
        write_text(tmp_path / "train-qrels.tsv.gz", f"100 0 D0 1\n{row}\n")
        assert refused(lambda: read_msmarco(*registered), words) == (str(Path(f"{registered[0]} qrels")), 2)

    def test_an_unknown_dataset_is_refused(self) -> None:
        pytest.importorskip("ir_datasets")
        assert refused(lambda: read_msmarco("msmarco-nothing/train"), "no dataset of that name") == (
            str(Path("msmarco-nothing/train")),
            None,
        )


class TestReleased:
    @pytest.mark.parametrize("array", [False, True], ids=["lines", "array"])
    def test_documents_queries_and_split_are_the_authors(self, tmp_path: Path, array: bool) -> None:
        found = read_released(samples.released(tmp_path, array=array))
        evens_first = [sorted(places, key=lambda i: i % 2) for places in samples.RELEASED.values()]
        ids = [tuple(str(i) for i in places) for places in evens_first]
        assert (found.split.initial, found.split.new, found.split.tuning) == tuple(ids)
        assert [d.id for d in found.collection.documents] == [id for some in ids for id in some]
        queries = [(query.text, query.document_id, query.split) for query in found.collection.queries]
        assert queries == [
            (question(i, part), str(i), part)
            for places in samples.RELEASED.values()
            for part in ("train", "val", "test")
            for i in places
            if part == "test" or i % 2 == 0
        ]
        assert found.generated == {str(i): [f"generated {k} for {i}" for k in (0, 1)] for i in range(COUNT)}
        assert found.collection.queries[0].id == "old_docs/train/1"
        assert len(found.split.train) + len(found.split.val) + len(found.split.test) == len(queries)

    def test_an_array_may_be_on_one_line(self, tmp_path: Path) -> None:
        lines = read_released(samples.released(tmp_path / "lines")).collection
        for path in samples.released(tmp_path / "arrays").rglob("*.json"):
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            path.write_text(json.dumps(rows))
        assert read_released(tmp_path / "arrays").collection.queries == lines.queries

    def test_the_text_of_a_document_may_come_with_a_later_row(self, tmp_path: Path) -> None:
        row = {"gen_question": "generated", "doc_id": 0, "doc_text": "the text"}
        append(samples.released(tmp_path) / "old_docs" / "passages_unseen.json", row)
        assert read_released(tmp_path).collection.documents[0] == Document(id="0", text="the text")

    def test_the_text_of_a_document_is_taken_where_it_is(self, tmp_path: Path) -> None:
        samples.released(tmp_path)
        row = {"question": "q", "doc_id": 0, "doc_text": "the text"}
        rows = [row, *({"question": "q", "doc_id": i} for i in range(2, 24, 2))]
        write_jsonl(tmp_path / "old_docs" / "trainqueries.json", rows)
        documents = read_released(tmp_path).collection.documents
        assert [d.text for d in documents[:2]] == ["the text", ""]

    @pytest.mark.parametrize(
        ("file", "row", "words"),
        [
            ("old_docs/valqueries.json", {"question": "q", "doc_id": 99}, "a query for '99'"),
            ("old_docs/valqueries.json", {"question": "q", "doc_id": 25}, "a query for '25'"),
            ("old_docs/valqueries.json", {"question": "q"}, "the field 'doc_id'"),
            ("new_docs/trainqueries.json", {"question": "q", "doc_id": 1}, "document '1' again"),
            ("tune_docs/passages_unseen.json", {"question": "q", "doc_id": 29}, "the field 'gen_question'"),
            ("tune_docs/testqueries.json", "{", "not valid JSON"),
            (
                "old_docs/passages_seen.json",
                {"gen_question": "q", "doc_id": 1, "doc_text": "\udce4"},
                "doc_text is not valid UTF-8",
            ),
        ],
    )
    def test_a_bad_line_is_refused(self, tmp_path: Path, file: str, row: object, words: str) -> None:
        line = append(samples.released(tmp_path) / file, row)
        assert refused(lambda: read_released(tmp_path), words) == (str(tmp_path / file), line)

    def test_a_bad_entry_of_an_array_is_refused_with_its_line(self, tmp_path: Path) -> None:
        path = samples.released(tmp_path, array=True) / "new_docs" / "valqueries.json"
        write_text(path, '[{"question": "q",\n  "doc_id": 24},\n\n {"question": "r"}]')
        assert refused(lambda: read_released(tmp_path), "the field 'doc_id'") == (str(path), 4)
        write_text(path, '[{"question": "q", "doc_id": 24}, 7]')
        assert refused(lambda: read_released(tmp_path), "must hold JSON objects, not int") == (str(path), 1)
        write_text(path, '[{"question": "q", "doc_id": 24},\n')
        assert refused(lambda: read_released(tmp_path), "Expecting value") == (str(path), 2)

    def test_an_empty_split_is_refused(self, tmp_path: Path) -> None:
        path = write_text(samples.released(tmp_path) / "tune_docs" / "testqueries.json", "")
        assert refused(lambda: read_released(tmp_path), "split 'test' needs at least one query") == (str(path), None)

    def test_a_pickle_is_never_opened(self, tmp_path: Path) -> None:
        path = samples.released(tmp_path) / "old_docs" / "passages_seen.json"
        path.rename(path.with_suffix(".pkl"))
        assert refused(lambda: read_released(tmp_path), "which can run code") == (str(path), None)
        path.with_suffix(".pkl").unlink()
        assert refused(lambda: read_released(tmp_path), "the released layout needs it") == (
            str(path),
            None,
        )
