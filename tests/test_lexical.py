"""BM25: against a plain reference, against its own past, and against another implementation."""

from __future__ import annotations

import gzip
import json
import math
import threading
import unicodedata
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from incdsi.engine.words import OwnWords
from incdsi.errors import (
    CorruptStore,
    DuplicateDocument,
    InvalidHyperparameters,
    InvalidInput,
    UnknownDocument,
    UnsupportedFormat,
)
from incdsi.lexical import LexicalIndex, tokenize
from incdsi.lexical import index as lexical_index

SQUAD = Path(__file__).parents[2] / "shared" / "data" / "squad_plus"

vocabulary = st.sampled_from(["boot", "river", "rain", "snow", "猫", "tent", "rope", "été"])
texts = st.lists(vocabulary, max_size=6).map(" ".join)
slots = st.integers(0, 5)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), slots, texts),
        st.tuples(st.just("add_many"), st.dictionaries(slots, texts, max_size=4)),
        st.tuples(st.just("remove"), slots),
        st.tuples(st.just("remove_many"), st.sets(slots, max_size=4)),
        st.tuples(st.just("reopen")),
    ),
    min_size=4,
    max_size=20,
)


def bm25(documents: dict[int, str], query: str, size: int, k1: float, b: float) -> np.ndarray:
    bags = {slot: Counter(tokenize(text)) for slot, text in documents.items()}
    mean = sum(bag.total() for bag in bags.values()) / max(len(bags), 1)
    scores = np.zeros(size)
    for term in tokenize(query):
        frequency = sum(term in bag for bag in bags.values())
        idf = math.log(1 + (len(bags) - frequency + 0.5) / (frequency + 0.5))
        for slot, bag in bags.items():
            if term in bag and slot < size:
                norm = k1 * (1 - b + b * bag.total() / mean)
                scores[slot] += idf * bag[term] / (bag[term] + norm)
    return scores


def build(documents: dict[int, str], **parameters: float) -> LexicalIndex:
    index = LexicalIndex(**parameters)
    index.add_many(list(documents), list(documents.values()))
    return index


def apply(index: LexicalIndex, documents: dict[int, str], operation: tuple) -> LexicalIndex:
    """Do it to the index and to the model; what the model has no room for is left out."""
    verb, *arguments = operation
    if verb == "add" and arguments[0] not in documents:
        index.add_many([arguments[0]], [arguments[1]])
        documents[arguments[0]] = arguments[1]
    elif verb == "add_many":
        fresh = {slot: text for slot, text in arguments[0].items() if slot not in documents}
        index.add_many(list(fresh), list(fresh.values()))
        documents.update(fresh)
    elif verb == "remove" and arguments[0] in documents:
        index.remove_many([arguments[0]])
        del documents[arguments[0]]
    elif verb == "remove_many":
        index.remove_many(arguments[0] & documents.keys())
        for slot in arguments[0] & documents.keys():
            del documents[slot]
    elif verb == "reopen":
        return LexicalIndex.from_arrays(index.to_arrays())
    return index


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  ... !?", []),
        ("Boots", ["boot"]),
        ("Levi's snake_case CAFÉ", ["levi", "s", "snake", "case", "cafe"]),
        ("planned planning plans", ["plan"] * 3),
        ("stories story", ["stori"] * 2),
        ("hiking hikes hiked hike", ["hike"] * 4),
        ("boxes class bus gas", ["box", "class", "bus", "gas"]),
        ("24–10 in 2016", ["24", "10", "in", "2016"]),
        ("Ёлка Ποσειδῶν", ["елка", "ποσειδων"]),
        ("straße ﬁve Ｗｉｄｅ", ["strass", "five", "wide"]),
        ("黒猫", ["黒", "猫", "黒猫"]),
        ("ガラス", ["ガ", "ラ", "ス", "ガラ", "ラス"]),
        ("USB端子x2", ["usb", "端", "子", "端子", "x2"]),
        ("हिन्दी।", ["हिन्दी"]),
        ("السَّلَامُ", ["السلام"]),
    ],
)
def test_text_becomes_terms(text: str, terms: list[str]) -> None:
    assert tokenize(text) == terms


@given(st.text())
def test_terms_do_not_depend_on_how_accents_are_encoded(text: str) -> None:
    composed, decomposed = (unicodedata.normalize(form, text) for form in ("NFC", "NFD"))
    assert tokenize(composed) == tokenize(decomposed)


@given(st.text(st.characters(categories=["Lu", "Ll", "Nd", "Zs", "Po", "Cs"])))
def test_any_text_can_be_indexed_and_finds_itself(text: str) -> None:
    index = build({0: "boots for rain", 2: text})
    assert (index.scores(text, 3)[2] > 0) == bool(tokenize(text))


@settings(deadline=None, max_examples=200)
@given(operations, texts, st.sampled_from([0, 8, 10_000]), st.sampled_from([(0.6, 0.75), (0.0, 0.0), (2.0, 1.0)]))
def test_after_any_history_scores_are_the_reference_s_and_bit_for_bit_a_fresh_index_s(
    history: list[tuple], words: str, merge_at: int, parameters: tuple[float, float]
) -> None:
    (k1, b), query = parameters, f"boot {words} rain 猫 snow river"
    documents = {0: "boot rain rain", 1: "river 猫 boot", 2: "snow"}
    index = build(documents, k1=k1, b=b)
    for operation in history:
        with mock.patch.object(lexical_index, "_MERGE_LEAST", merge_at):
            index = apply(index, documents, operation)
        scores = index.scores(query, 6)
        np.testing.assert_allclose(scores, bm25(documents, query, 6, k1, b), rtol=1e-5)
        np.testing.assert_array_equal(scores, build(documents, k1=k1, b=b).scores(query, 6))
        assert [slot for slot in range(6) if slot in index] == sorted(documents)
        assert len(index) == len(documents)


def bm25_of_documents(documents: list[list[str]], query: str, k1: float = 0.6, b: float = 0.75) -> list[float]:
    """The best text of each document: words are rare among documents, and no part is shorter than a mean document."""
    bags = [[Counter(tokenize(text)) for text in document] for document in documents]
    lengths = [sum(bag.total() for bag in some) // len(some) for some in bags]
    mean, scores = sum(lengths) / len(bags) or 1.0, [0.0] * len(bags)
    for place, some in enumerate(bags):
        for bag in some:
            length = bag.total() if len(some) == 1 else max(bag.total(), mean)
            score = 0.0
            for term in tokenize(query):
                frequency = sum(any(term in one for one in texts) for texts in bags)
                idf = math.log(1 + (len(bags) - frequency + 0.5) / (frequency + 0.5))
                score += idf * bag[term] / (bag[term] + k1 * (1 - b + b * length / mean)) if bag[term] else 0.0
            scores[place] = max(scores[place], score)
    return scores


@settings(deadline=None, max_examples=200)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.lists(st.lists(texts, min_size=1, max_size=4), max_size=3)),
            st.tuples(st.just("remove"), st.sets(slots)),
            st.tuples(st.just("reopen")),
        ),
        max_size=8,
    ),
    texts,
    st.sampled_from([0, 8, 10_000]),
)
# Half a word a document.
@example(history=[("remove", {0, 1, 2}), ("add", [["boot", ""], ["boot", ""]])], words="", merge_at=0)
def test_documents_of_several_texts_score_by_the_best_of_them_after_any_history(
    history: list[tuple], words: str, merge_at: int
) -> None:
    documents = [["boot rain rain"], ["river 猫 boot", "snow snow", "boot"], ["snow"]]
    there, index, query = [0, 1, 2], OwnWords("english"), f"boot {words} rain 猫 snow river"
    index.add(documents)
    for verb, *arguments in history:
        with mock.patch.object(lexical_index, "_MERGE_LEAST", merge_at):
            if verb == "add":
                there += range(len(documents), len(documents) + len(arguments[0]))
                documents = [*documents, *arguments[0]]
                index.add(arguments[0])
            elif verb == "remove":
                gone = [there[place] for place in arguments[0] if place < len(there)]
                there = [slot for slot in there if slot not in gone]
                index.remove(gone)
            else:
                documents = [documents[slot] for slot in there]
                index = OwnWords.from_arrays(index.to_arrays(np.array(there, np.intp)), "english", len(there))
                there = list(range(len(there)))
    present = [documents[slot] for slot in there]
    fresh = OwnWords("english")
    fresh.add(present)
    scores = index.units.best(index.scores_and_limit(query, len(documents))[0], len(documents))[there]
    np.testing.assert_array_equal(
        scores, fresh.units.best(fresh.scores_and_limit(query, len(present))[0], len(present))
    )
    np.testing.assert_allclose(scores, bm25_of_documents(present, query) if present else [], rtol=1e-5)
    for document, score in zip(present, scores, strict=True):
        assert index.score_of(document, query) == pytest.approx(score, rel=1e-5)


def test_a_word_said_all_over_one_document_stays_rare_and_marked() -> None:
    index = OwnWords("english")
    index.add([["ospreys nest"] * 40, *([f"boots number {place}"] for place in range(40))])
    assert index.marker("boots of ospreys")("boots for ospreys") == [(10, 17)]


@pytest.mark.parametrize("merge_at", [0, 10_000])
def test_what_came_and_went_leaves_no_trace_in_the_arrays(merge_at: int) -> None:
    documents = {slot: f"boot river {'rain ' * slot}" for slot in range(5)}
    index = build(documents)
    before = index.to_arrays()
    with mock.patch.object(lexical_index, "_MERGE_LEAST", merge_at):
        index.add_many([9], ["secret river"])
        index.remove_many([9])
    after = index.to_arrays()
    assert before.keys() == after.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array, err_msg=name)


def test_many_documents_in_one_batch_equal_the_same_ones_added_singly() -> None:
    rng = np.random.default_rng(0)
    documents = {slot: " ".join(f"w{int(z)}" for z in rng.zipf(1.3, 40) if z < 10**6) for slot in range(900)}
    singly = LexicalIndex()
    for slot in rng.permutation(900).tolist():
        singly.add_many([slot], [documents[slot]])
    assert len(singly._base) > 0, "too few postings to have merged: the test lost its point"
    for query in ("w1 w2 w3", "w1 w1 w17", documents[5]):
        np.testing.assert_array_equal(singly.scores(query, 900), build(documents).scores(query, 900))


def test_a_repeated_query_word_counts_as_often_as_it_occurs() -> None:
    index = build({0: "boots in rain", 1: "boots", 2: "rain rain"})
    np.testing.assert_allclose(index.scores("boot boot boot", 3), 3 * index.scores("boot", 3), rtol=1e-6)


@settings(max_examples=50)
@given(documents=st.dictionaries(slots, texts, max_size=6), query=texts, words=texts)
def test_a_text_is_scored_by_the_documents_there_are_as_one_of_them_would_be(
    documents: dict[int, str], query: str, words: str
) -> None:
    index = build(documents)
    scores, limit = index.scores_and_limit(query, 6)
    for slot, text in documents.items():
        assert index.score_of([text], query) == pytest.approx(scores[slot], rel=1e-6)
    assert index.score_of([words], query) < limit or limit == 0.0
    np.testing.assert_array_equal(index.scores(query, 6), scores)


def test_no_document_reaches_the_limit_and_endless_repetition_comes_near_it() -> None:
    index = build({0: "boots boots river", 1: "tent"}, b=0.0)
    scores, limit = index.scores_and_limit("boots river", 2)
    assert 0 < scores[0] < limit
    assert index.score_of(["boots river " * 10_000], "boots river") == pytest.approx(limit, rel=1e-3)


def test_scores_are_cut_or_padded_to_the_size_asked_for() -> None:
    index = build({0: "boots", 5: "boots"})
    whole = index.scores("boots", 8)
    assert whole.shape == (8,)
    assert whole.dtype == np.float32
    assert np.flatnonzero(whole).tolist() == [0, 5]
    np.testing.assert_array_equal(index.scores("boots", 3), whole[:3])
    np.testing.assert_array_equal(index.scores("nothing here", 3), np.zeros(3))
    assert index.scores("boots", 0).shape == (0,)


def test_an_empty_index_and_a_document_without_words_score_zero() -> None:
    assert LexicalIndex().scores("boots", 2).tolist() == [0, 0]
    index = build({0: "", 1: "..."})
    assert len(index) == 2
    assert index.scores("boots", 2).tolist() == [0, 0]


def test_a_word_repeated_beyond_any_counter_is_still_indexed() -> None:
    index = build({0: "boots " * 70_000, 1: "boots and rain"})
    np.testing.assert_allclose(
        index.scores("boots", 2), bm25({0: "boots " * 70_000, 1: "boots and rain"}, "boots", 2, 0.6, 0.75), rtol=1e-4
    )


@pytest.mark.parametrize(
    ("slots", "texts", "error", "sentence"),
    [
        ([3, 0], ["x", "y"], DuplicateDocument, "slot 0 already holds a document"),
        ([3, 3], ["x", "y"], DuplicateDocument, "a slot occurs twice in one batch"),
        ([3, -1], ["x", "y"], InvalidInput, "a slot must be between 0 and 2147483646, not -1"),
        ([3, 2**31], ["x", "y"], InvalidInput, "a slot must be between 0 and 2147483646, not 2147483648"),
        ([3, 4], ["x"], InvalidInput, "expected a slot for each text, found 2 and 1"),
    ],
)
def test_a_refused_batch_changes_nothing(
    slots: list[int], texts: list[str], error: type[Exception], sentence: str
) -> None:
    index = build({0: "boots"})
    with pytest.raises(error, match=sentence):
        index.add_many(slots, texts)
    assert len(index) == 1
    assert 3 not in index


def test_a_batch_stopped_by_its_progress_callback_changes_nothing() -> None:
    index, seen = build({0: "boots"}), []

    def stop_at_two(done: int, total: int) -> None:
        seen.append((done, total))
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index.add_many([1, 2, 3], ["a", "b", "c"], stop_at_two)
    assert seen == [(1, 3), (2, 3)]
    assert len(index) == 1


def test_removing_an_unknown_slot_is_refused_and_removes_nothing() -> None:
    index = build({0: "boots"})
    with pytest.raises(UnknownDocument, match="slot 7 holds no document"):
        index.remove_many([0, 7])
    assert 0 in index


@pytest.mark.parametrize(("k1", "b"), [(-1, 0.5), (math.nan, 0.5), (math.inf, 0.5), (1, -0.1), (1, 1.1)])
def test_parameters_out_of_range_are_refused(k1: float, b: float) -> None:
    with pytest.raises(InvalidHyperparameters):
        LexicalIndex(k1, b)


def test_a_negative_size_is_refused() -> None:
    with pytest.raises(InvalidInput):
        LexicalIndex().scores("boots", -1)


def test_memory_mapped_arrays_give_the_same_index_and_can_be_edited(tmp_path: Path) -> None:
    index = build({0: "boots in rain", 4: "tents in snow"}, k1=1.5, b=0.5)
    for name, array in index.to_arrays().items():
        np.save(tmp_path / f"{name}.npy", array)
    opened = LexicalIndex.from_arrays({p.stem: np.load(p, mmap_mode="r") for p in tmp_path.glob("*.npy")})
    assert (opened.k1, opened.b) == (1.5, 0.5)
    np.testing.assert_array_equal(opened.scores("rain in tents", 5), index.scores("rain in tents", 5))
    for each in (opened, index):
        each.remove_many([0])
        each.add_many([5], ["rain on tents"])
    np.testing.assert_array_equal(opened.scores("rain in tents", 6), index.scores("rain in tents", 6))


def test_another_format_is_refused_with_both_numbers() -> None:
    arrays = build({0: "boots"}).to_arrays()
    with pytest.raises(UnsupportedFormat, match="format 5, found 99"):
        LexicalIndex.from_arrays({**arrays, "format": np.array([99])})
    with pytest.raises(UnsupportedFormat):
        LexicalIndex.from_arrays({})


@pytest.mark.parametrize("name", ["parameters", "terms", "offsets", "slots", "counts", "lengths"])
def test_damaged_arrays_are_refused(name: str) -> None:
    arrays = build({0: "boots in rain", 1: "snow"}).to_arrays()
    whole = arrays.pop(name)
    with pytest.raises(CorruptStore):
        LexicalIndex.from_arrays(arrays)
    with pytest.raises(CorruptStore):
        LexicalIndex.from_arrays({**arrays, name: whole.astype(np.complex128)})
    if name != "lengths":
        with pytest.raises(CorruptStore):
            LexicalIndex.from_arrays({**arrays, name: whole[:-1]})


@pytest.mark.parametrize("merge_at", [0, 10_000])
def test_readers_see_each_change_whole_or_not_at_all(merge_at: int) -> None:
    documents = {slot: f"boots for rain and river {slot}" for slot in range(30)}
    index, query = build(documents), "boots in rain"
    without = index.scores(query, 31)
    allowed = {without.tobytes(), build({**documents, 30: "rain rain boots"}).scores(query, 31).tobytes()}
    seen: set[bytes] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(index.scores(query, 31).tobytes())

    readers = [threading.Thread(target=read) for _ in range(3)]
    with mock.patch.object(lexical_index, "_MERGE_LEAST", merge_at):
        for reader in readers:
            reader.start()
        for _ in range(300):
            index.add_many([30], ["rain rain boots"])
            index.remove_many([30])
        done.set()
        for reader in readers:
            reader.join()
    assert seen
    assert seen <= allowed


def test_adding_and_removing_for_ever_keeps_nothing() -> None:
    index = build({0: "boots"})
    for slot in range(1, 500):
        index.add_many([slot], [f"rain w{slot}"])
        index.remove_many([slot])
    assert index._recent.bags.keys() == {0}
    assert (index._recent.size, len(index._recent._postings), index._removed_postings) == (1, 1, 0)


@pytest.mark.slow
@pytest.mark.skipif(not SQUAD.exists(), reason="squad_plus is not beside the repository")
def test_quality_on_real_questions_is_at_least_that_of_bm25s() -> None:
    bm25s = pytest.importorskip("bm25s")
    documents = _lines("docs")
    questions = [line for line in _lines("queries") if line["split"] == "test"]
    contents = [f"{line['title']}\n{line['text']}".strip() for line in documents]
    slot_of = {line["id"]: slot for slot, line in enumerate(documents)}
    gold = [slot_of[q["doc_id"]] for q in questions]
    ours, theirs = build(dict(enumerate(contents))), bm25s.BM25()
    theirs.index(bm25s.tokenize(contents, show_progress=False), show_progress=False)
    tokens = bm25s.tokenize([q["text"] for q in questions], return_ids=False, show_progress=False)
    found = _hits([ours.scores(q["text"], len(contents)) for q in questions], gold)
    peer = _hits([theirs.get_scores(words) for words in tokens], gold)
    assert found[0] >= max(peer[0], 59.0)
    assert found[1] >= max(peer[1], 77.2)


def _lines(name: str) -> list[dict[str, str]]:
    with gzip.open(SQUAD / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _hits(scores: list[np.ndarray], gold: list[int]) -> tuple[float, float]:
    """Hits@1 and Hits@10 in percent; a document that ties is ranked in the middle of its equals."""
    own = [row[place] for row, place in zip(scores, gold, strict=True)]
    ranks = np.array([(row > s).sum() + (row == s).sum() / 2 + 0.5 for row, s in zip(scores, own, strict=True)])
    return 100 * float(np.mean(ranks < 2)), 100 * float(np.mean(ranks < 11))
