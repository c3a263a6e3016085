"""Long documents: found by any passage, each once; short ones as before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from index_samples import MODES, PROBES, TOY, ToyEncoder, asked_for, docs, ids, record
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.index import Index
from incdsi.lexical import LexicalIndex
from incdsi.progress import Progress
from incdsi.store import Store
from incdsi.text.passages import Sections, centre


class Narrow(ToyEncoder):
    """Reads 32 words of a text, counts them, and remembers what it was asked."""

    tokens_read = 32

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        self.seen += texts
        return super().encode([" ".join(text.split()[:32]) for text in texts], progress)


TOPICS = ("laces", "soles", "leather", "wax", "socks", "heels", "buckles", "insoles", "eyelets", "tongues")


def manual(id: str = "manual", topics: Sequence[str] = TOPICS) -> Document:
    sections = (
        f"## About {topic}\nThe {topic} of this boot are {topic} for {id} and nothing but {topic}. Keep it so."
        for topic in topics
    )
    return Document(id=id, title=f"Handbook {id}", text="# Boots\n" + "\n\n".join(sections))


@pytest.fixture
def narrow() -> Narrow:
    return Narrow()


@pytest.fixture
def index(tmp_path: Path, narrow: Narrow) -> Index:
    return Index.create(tmp_path / "shop", narrow)


def state(index: Index) -> list[object]:
    """Every answer, bit for bit."""
    return [
        (hit.document_id, hit.score, hit.learned, hit.nearest, hit.lexical)
        for mode in MODES
        for probe in (*PROBES, *(f"about the {topic}" for topic in TOPICS))
        for hit in index.search(probe, 10, mode=mode)
    ]


def test_a_long_text_is_kept_in_passages_under_their_headings_and_a_short_one_is_not(index):
    index.add_many([manual(), *docs(3)])
    pieces = [one.piece for one in record(index, "manual").passages]
    assert [piece.headings for piece in pieces] == [("Boots", f"About {topic}") for topic in TOPICS]
    assert manual().text[pieces[3].start : pieces[3].end].startswith("The wax of this boot")
    assert record(index, "d0").passages == ()


def test_it_is_found_by_what_stands_at_its_end_and_once(index):
    index.add_many([*docs(20), manual("a"), manual("b", TOPICS[:3])])
    for mode in ("lexical", "fused"):
        found = ids(index, "the tongues of this boot", k=30, mode=mode)
        assert found[0] == "a"
        assert len(found) == len(set(found))


def test_its_anchor_is_the_mean_of_its_passages(index):
    index.add(manual())
    stored = record(index, "manual")
    assert stored.anchor.tolist() == centre(stored.passages).tolist()
    assert np.linalg.norm(stored.anchor) == pytest.approx(1.0, abs=1e-6)


def test_where_no_text_is_long_answers_are_bit_for_bit_those_without_passages(tmp_path):
    states = []
    for splitter in (Sections(), "none"):
        with Index.create(tmp_path / str(len(states)), TOY, splitter=splitter) as index:
            index.add_many(docs(60), asked_for(docs(60), 4))
            index.teach("something new", "d7")
            states.append(state(index))
    assert states[0] == states[1]


def test_words_are_found_by_the_best_passage_or_by_what_was_asked(index):
    index.add_many([manual("a"), manual("b", TOPICS[5:]), *docs(5)], {"a": ["where do zebras sleep"]})
    index.teach("violins", "b")
    records = [record(index, id) for id in ("a", "b", *(one.id for one in docs(5)))]
    units = [(one.document.id, words) for one in records for words in one.words]
    fresh = LexicalIndex()
    fresh.add_many(range(len(units)), [words for _, words in units], sizes=[len(one.words) for one in records])
    for query in ("zebras", "violins", "about the buckles", "the river", "boot tongues", "handbook"):
        scores = dict[str, float]()
        for (id, _), score in zip(units, fresh.scores(query, len(units)).tolist(), strict=True):
            scores[id] = max(score, scores.get(id, 0.0))
        found = {hit.document_id: hit.score for hit in index.search(query, 30, mode="lexical")}
        assert found == {id: score for id, score in scores.items() if score > 0}


def test_an_update_embeds_only_the_passages_that_changed(index, narrow):
    index.add(manual())
    before = {one.piece.headings: one.embedding.tobytes() for one in record(index, "manual").passages}
    narrow.seen.clear()
    changed = replace(manual(), text=manual().text.replace("nothing but wax", "plenty of beeswax"))
    index.update(changed)
    texts = [text for text in narrow.seen if text.startswith("Handbook manual: Boots: About")]
    assert len(texts) == 1
    assert "plenty of beeswax" in texts[0]
    after = {one.piece.headings: one.embedding.tobytes() for one in record(index, "manual").passages}
    assert [path for path in before if before[path] != after[path]] == [("Boots", "About wax")]
    narrow.seen.clear()
    index.update(replace(changed, metadata={"shelf": 3}))
    assert narrow.seen == []
    assert len(record(index, "manual").passages) == len(TOPICS)
    index.update(replace(changed, text="Short now."))
    assert record(index, "manual").passages == ()


def test_one_by_one_or_together_reopened_compacted_or_restored_it_is_the_same_index(tmp_path, narrow):
    batch = [manual("a"), *docs(10), manual("b", TOPICS[:4]), manual("c", TOPICS[4:])]
    with Index.create(tmp_path / "one", narrow) as index:
        for document in batch:
            index.add(document)
        expected = state(index)
    with Index.create(tmp_path / "many", narrow) as index:
        index.add_many(batch)
        assert state(index) == expected
        index.add(manual("gone"))
        index.delete("gone")
        assert state(index) == expected
        index.compact()  # leaves a base
        assert state(index) == expected
        index.backup(tmp_path / "backup")
    Store.restore(tmp_path / "backup", tmp_path / "restored")
    for path in ("many", "restored"):
        with Index.open(tmp_path / path, narrow) as index:
            assert state(index) == expected
            assert index.verify() == []


def test_another_encoder_embeds_the_passages_anew(index):
    index.add_many([manual("a"), *docs(5)])
    index.adopt(ToyEncoder(16, seed=1))
    stored = record(index, "a")
    assert len(stored.passages) == len(TOPICS)
    assert {one.embedding.shape for one in stored.passages} == {(16,)}
    assert ids(index, "the tongues of this boot")[0] == "a"
    assert index.verify() == []


def test_a_damaged_passage_is_found(index):
    index.add(manual())
    index.close()
    path = index.engine.path
    with Store.open(path, writer=True) as store, store._writing() as connection:
        connection.execute("UPDATE passages SET spans = replace(spans, 'About wax', 'About tax')")
    with Store.open(path, writer=False) as store:
        assert store.verify() == ["document 'manual' in row 1: the passages does not match its checksum"]


def halves(text: str) -> list[tuple[int, int]]:
    return [(0, len(text) // 2), (len(text) // 2, len(text))]


def test_a_splitter_of_ones_own_must_be_given_again(tmp_path: Path):
    with Index.create(tmp_path / "shop", TOY, splitter=halves) as index:
        index.add(manual())
        assert len(record(index, "manual").passages) == 2
    with Index.open(tmp_path / "shop", TOY) as index:
        assert ids(index, "the wax") == ["manual"]
        with pytest.raises(InvalidInput, match=r"halves; open the index with splitter="):
            index.add(manual("b"))
        index.update(replace(manual(), metadata={"new": True}))
    with Index.open(tmp_path / "shop", TOY, splitter=halves) as index:
        index.add(manual("b"))
        assert len(record(index, "b").passages) == 2
    with Index.open(tmp_path / "shop", TOY, splitter="none") as index:
        index.add(manual("c"))
        assert record(index, "c").passages == ()


@pytest.mark.parametrize("splitter", [7, "sections"])
def test_what_is_no_splitter_is_refused(tmp_path, splitter):
    with pytest.raises(InvalidInput, match="a function of a text"):
        Index.create(tmp_path / "shop", TOY, splitter=splitter)
    assert not (tmp_path / "shop").exists()


def test_what_a_splitter_gets_wrong_changes_nothing(tmp_path, reopen: Callable[..., Index]):
    with Index.create(tmp_path / "shop", TOY, splitter=lambda text: ["not there"]) as index:
        with pytest.raises(InvalidInput, match="not in the text"):
            index.add_many(docs(3))
        assert len(index) == 0


def test_a_hit_names_the_passage_that_matches_best_and_shows_it(index):
    index.add_many([*docs(10), manual("a"), manual("b", TOPICS[:3])])
    for mode in MODES:
        for topic in ("wax", "tongues"):
            (hit,) = (hit for hit in index.search(f"the {topic} of this boot", 30, mode=mode) if hit.document_id == "a")
            passage = hit.passage
            assert passage is not None
            assert passage.headings == ("Boots", f"About {topic}")
            assert hit.document.text[passage.start : passage.end] == passage.text
            assert f"**{topic}**" in hit.snippet.marked()
            assert hit.snippet == passage.snippet
        short = next(hit for hit in index.search("river", 30, mode=mode) if hit.document_id.startswith("d"))
        assert (short.passages, short.passage) == ((), None)
        assert short.snippet.text == " ".join(short.document.text.split())


def test_several_passages_come_best_first_when_asked_for(index):
    index.add_many([manual("a"), *docs(3)])
    found = index.search("wax and buckles, the wax", 1, passages=3)[0].passages
    assert [one.headings[-1] for one in found[:2]] == ["About wax", "About buckles"]
    assert len(found) == 3
    assert len(index.search("wax", 1, passages=99)[0].passages) == len(TOPICS)
    with pytest.raises(InvalidInput, match="passages must be a whole number of at least 1, not 0"):
        index.search("wax", passages=0)


def test_a_document_replaced_after_it_was_ranked_is_shown_as_it_is_now(index, monkeypatch):
    index.add(manual("a"))
    read = index.engine.passaged

    def late(rows, most_bytes):
        monkeypatch.undo()
        index.update(manual("a", TOPICS[:4]))
        return read(rows, most_bytes)

    monkeypatch.setattr(index.engine, "passaged", late)
    (hit,) = index.search("the tongues of this boot")
    assert hit.document == manual("a", TOPICS[:4])
    assert hit.passage.text == hit.document.text[hit.passage.start : hit.passage.end]
