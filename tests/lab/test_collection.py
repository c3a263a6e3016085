"""A collection is whole when it is made, and a split is the same for everybody."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, InvalidFile, InvalidInput, UnknownDocument
from incdsi_lab.collection import Collection, Judged
from incdsi_lab.splits import Split, split


def make(documents: int = 40, train: int = 50, val: int = 0, test: int = 20) -> Collection:
    queries = [
        Judged(id=f"{part}{number}", text=f"{part} {number}", document_id=f"d{number % documents}", split=part)
        for part, count in (("train", train), ("val", val), ("test", test))
        for number in range(count)
    ]
    return Collection(
        name="made", documents=[Document(id=f"d{i}", text=f"text {i}") for i in range(documents)], queries=queries
    )


class TestCollection:
    def test_refuses_a_document_twice(self) -> None:
        with pytest.raises(DuplicateDocument, match="'d1' again"):
            Collection(name="x", documents=[Document(id="d1", text="a")] * 2, queries=[])

    def test_refuses_a_query_without_its_document(self) -> None:
        lost = Judged(id="q", text="what", document_id="nowhere", split="test")
        with pytest.raises(UnknownDocument, match="unknown document 'nowhere'"):
            Collection(name="x", documents=[Document(id="d1", text="a")], queries=[lost])

    def test_refuses_a_query_twice(self) -> None:
        query = Judged(id="q", text="what", document_id="d1", split="test")
        with pytest.raises(InvalidInput, match="'q' again"):
            Collection(name="x", documents=[Document(id="d1", text="a")], queries=[query, query])

    @pytest.mark.parametrize("empty", ["train", "test"])
    def test_refuses_an_empty_part(self, empty: str) -> None:
        with pytest.raises(InvalidInput, match=f"split '{empty}'"):
            make(**{empty: 0})

    @pytest.mark.parametrize(("field", "value"), [("split", "dev"), ("text", "  "), ("id", "")])
    def test_refuses_a_query_that_says_nothing(self, field: str, value: str) -> None:
        with pytest.raises(InvalidInput, match=r"query needs an id|split must be train, val or test"):
            Judged(**{"id": "q", "text": "what", "document_id": "d", "split": "train", field: value})

    def test_a_changed_word_changes_the_digest(self) -> None:
        one = make()
        other = Collection(
            name="made", documents=[Document(id="d0", text="another"), *one.documents[1:]], queries=one.queries
        )
        assert one.digest == make().digest
        assert one.digest != other.digest


class TestSplit:
    def test_documents_and_queries_are_divided_as_asked(self) -> None:
        collection = make(documents=1000, train=500)
        found = split(collection, seed=3)
        assert (len(found.initial), len(found.new), len(found.tuning)) == (900, 90, 10)
        assert {*found.initial, *found.new, *found.tuning} == set(collection.places)
        assert (len(found.train), len(found.val), len(found.test)) == (400, 100, 20)
        assert {*found.train, *found.val} == {query.id for query in collection.of("train")}

    def test_val_queries_of_its_own_are_kept(self) -> None:
        found = split(make(val=7), seed=0)
        assert (len(found.train), len(found.val)) == (50, 7)

    def test_the_seed_decides(self) -> None:
        assert split(make(), seed=1) == split(make(), seed=1)
        assert split(make(), seed=1) != split(make(), seed=2)

    def test_too_few_documents_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="more than 2 documents"):
            split(make(documents=2), seed=0)

    @pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.5, 0.2, 0.2), (1.2, -0.1, -0.1)])
    def test_fractions_add_up(self, fractions: tuple[float, ...]) -> None:
        with pytest.raises(InvalidInput, match="add up to 1"):
            split(make(), seed=0, fractions=fractions)

    def test_reading_gives_what_was_written(self, tmp_path: Path) -> None:
        collection = make()
        found = split(collection, seed=5)
        found.write(tmp_path / "split")
        assert Split.read(tmp_path / "split", collection) == found

    def test_sha256sum_can_check_it(self, tmp_path: Path) -> None:
        split(make(), seed=5).write(tmp_path)
        command = ["sha256sum", "-c", "--quiet", "SHA256SUMS"]
        assert subprocess.run(command, cwd=tmp_path, check=False).returncode == 0

    def test_a_changed_file_is_refused_with_the_line_of_its_hash(self, tmp_path: Path) -> None:
        split(make(), seed=5).write(tmp_path)
        (tmp_path / "new.txt").write_text("d1\n")
        with pytest.raises(InvalidFile, match=r"SHA256SUMS:3: new\.txt has changed since it was written") as refused:
            Split.read(tmp_path)
        assert refused.value.line == 3

    def test_a_missing_file_is_refused(self, tmp_path: Path) -> None:
        split(make(), seed=5).write(tmp_path)
        (tmp_path / "val.txt").unlink()
        with pytest.raises(InvalidFile, match=r"val\.txt is missing beside this file"):
            Split.read(tmp_path)
        with pytest.raises(InvalidFile, match=r"that Split\.write made"):
            Split.read(tmp_path / "nowhere")

    def test_another_collection_is_refused(self, tmp_path: Path) -> None:
        split(make(), seed=5).write(tmp_path)
        with pytest.raises(InvalidFile, match="found one of another collection"):
            Split.read(tmp_path, make(documents=41))
        assert json.loads((tmp_path / "split.json").read_text())["seed"] == 5

    def test_an_id_in_two_parts_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="'a' twice"):
            Split(
                seed=0,
                collection_digest="",
                initial=("a",),
                new=("a",),
                tuning=(),
                train=("q",),
                val=(),
                test=("r",),
            )
