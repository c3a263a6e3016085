"""The seq2seq generator, through a real if tiny T5."""

from __future__ import annotations

from pathlib import Path

import pytest

from incdsi.documents import Document
from incdsi.errors import InvalidFile, InvalidInput, ModelNotFound
from incdsi.text.generators import generate_all

pytest.importorskip("torch")
pytest.importorskip("transformers")
from incdsi.text.generators.seq2seq import Sampling, Seq2Seq

SAMPLING = Sampling(count=5, section=16, top_k=8, max_new_tokens=6, batch=2, seed=3)


def documents(count: int) -> list[Document]:
    words = ["the", "river", "flows", "to", "the", "sea", "and", "the", "mountain", "is", "deep"]
    return [Document(id=f"d{i}", title=f"title {i}", text=" ".join(words[i % 5 :] * (1 + 4 * i))) for i in range(count)]


@pytest.fixture
def generator(tiny_t5: Path) -> Seq2Seq:
    return Seq2Seq(tiny_t5, sampling=SAMPLING)


def test_writes_at_most_count_distinct_queries_for_each_document(generator: Seq2Seq) -> None:
    queries = generate_all(documents(5), generator)
    assert list(queries) == [f"d{i}" for i in range(5)]
    assert all(0 < len(texts) <= 5 for texts in queries.values())
    assert all(len(texts) == len(set(texts)) and all(texts) for texts in queries.values())
    assert len({tuple(texts) for texts in queries.values()}) == 5


def test_one_seed_gives_the_same_queries_and_another_seed_others(generator: Seq2Seq, tiny_t5: Path) -> None:
    again = Seq2Seq(tiny_t5, sampling=SAMPLING)
    other = Seq2Seq(tiny_t5, sampling=Sampling(count=5, section=16, top_k=8, max_new_tokens=6, batch=2, seed=4))
    batch = documents(3)
    assert generator.generate_many(batch) == again.generate_many(batch) != other.generate_many(batch)


def test_a_document_gets_the_same_queries_in_any_company(generator: Seq2Seq) -> None:
    batch = documents(4)
    assert generator.generate_many(batch) == [generator(document) for document in batch]
    assert generator.generate_many(batch[::-1]) == generator.generate_many(batch)[::-1]


def test_interrupted_and_resumed_equals_uninterrupted(generator: Seq2Seq, tiny_t5: Path, tmp_path: Path) -> None:
    batch, journal = documents(6), tmp_path / "run" / "journal.jsonl"

    def stop(done: int, total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Seq2Seq(tiny_t5, sampling=SAMPLING, journal=journal).generate_many(batch, stop)
    kept = journal.read_bytes()
    journal.write_bytes(kept + b'{"id": "d4", "key": "torn')
    resumed = Seq2Seq(tiny_t5, sampling=SAMPLING, journal=journal)
    assert resumed.generate_many(batch) == generator.generate_many(batch)
    assert journal.read_bytes().startswith(kept)
    assert len(journal.read_text().splitlines()) == 6


def test_a_changed_document_is_generated_again(tiny_t5: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    resumed = Seq2Seq(tiny_t5, sampling=SAMPLING, journal=journal)
    resumed(Document(id="d", text="the river"))
    resumed(Document(id="d", text="the mountain is deep"))
    assert len(journal.read_text().splitlines()) == 2


def test_a_foreign_journal_is_refused_with_its_line(tiny_t5: Path, tmp_path: Path) -> None:
    journal = tmp_path / "journal.jsonl"
    journal.write_text('{"key": "k", "queries": []}\n{"text": "not ours"}\n')
    with pytest.raises(InvalidFile, match=r"journal\.jsonl:2: not a line of a generation journal"):
        Seq2Seq(tiny_t5, sampling=SAMPLING, journal=journal).generate_many(documents(1))


def test_sections_are_spread_from_the_first_token_to_the_last(generator: Seq2Seq) -> None:
    (document,) = documents(20)[-1:]
    ids = generator._tokenizer(document.content, add_special_tokens=False)["input_ids"]
    sections = generator._sections(document)
    assert len(sections) == SAMPLING.count
    assert all(len(section) == SAMPLING.section for section in sections)
    assert sections[0][:-1] == ids[:15]
    assert sections[-1][:-1] == ids[-15:]


def test_a_document_without_text_has_no_queries(generator: Seq2Seq) -> None:
    empty, full = Document(id="empty", text="  "), documents(1)[0]
    assert generator.generate_many([empty, full]) == [[], generator(full)]
    assert generator.generate_many([]) == []


def test_progress_ends_at_the_number_of_documents(generator: Seq2Seq) -> None:
    seen: list[tuple[int, int]] = []
    generate_all(documents(5), generator, lambda done, total: seen.append((done, total)))
    assert seen == [(2, 5), (4, 5), (5, 5)]


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ModelNotFound, match=r"config\.json and modules\.json are missing"):
        Seq2Seq(tmp_path)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(InvalidInput, match="top_k must be at least 1, not 0"):
        Sampling(top_k=0)
