"""The nearest of a document's own texts, against looking at every one of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.rows.products import exact
from incdsi.rows.scores import LENT
from incdsi.rows.texts import DISCOUNT, Measure, OwnTexts

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=4)),
        st.tuples(st.just("replace"), st.integers(0, 9), st.integers(0, 2)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("reopen")),
    ),
    max_size=8,
)
Known = dict[int, tuple[np.ndarray, np.ndarray]]  # texts, and what was asked, by slot


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal((count, 8)).astype(np.float32)


def changed(changes: list, rng: np.random.Generator) -> tuple[OwnTexts, Known, int]:
    """What these changes make, what should be there, and how many slots there were."""
    texts, known, slots = OwnTexts(8), Known(), 0
    for verb, *arguments in changes:
        if verb == "append":
            new = [(drawn(rng, count), 2 + drawn(rng, asked)) for count, asked in arguments[0]]
            texts.append_many(*zip(*new, strict=True))
            known.update(enumerate(new, start=slots))
            slots += len(new)
        elif verb == "replace" and arguments[0] in known:
            known[slots] = drawn(rng, 2), 2 + drawn(rng, arguments[1])
            texts.append_many(*([some] for some in known[slots]), instead_of=[arguments[0]])
            del known[arguments[0]]
            slots += 1
        elif verb == "remove" and arguments[0] in known:
            texts.remove_many([arguments[0]])
            del known[arguments[0]]
        elif verb == "reopen":
            saved = texts.saved(np.array(sorted(known), dtype=np.intp))
            texts, slots = OwnTexts(8), len(known)
            texts.fill_saved({name: array[:] for name, array in saved.items()})
            known = dict(enumerate(known[slot] for slot in sorted(known)))
    return texts, known, slots


def lent(asked: np.ndarray, texts: np.ndarray) -> tuple[float, float]:
    """Mean and deviation of scores among LENT more that are spread as those of texts."""
    mean = (asked.sum() + LENT * texts.mean()) / (len(asked) + LENT)
    squares = ((asked - mean) ** 2).sum() + LENT * (texts.var() + (texts.mean() - mean) ** 2)
    return mean, np.sqrt(squares / (len(asked) + LENT))


@given(CHANGES, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_after_any_changes_a_document_scores_as_its_nearest_text(changes, seed) -> None:
    rng = np.random.default_rng(seed)
    texts, known, slots = changed(changes, rng)
    query, order = drawn(rng, 1)[0], sorted(known)
    alive = np.isin(np.arange(slots), order)
    measure = Measure.of(query, *(moment.moments for moment in texts.moment))
    (scores,) = texts.scores([measure], alive, texts.moment)
    found = scores.exact(np.array(order, dtype=np.intp))
    assert found.tolist() == [measure.each(*known[slot]).max() for slot in order]
    assert (found <= scores.at_most(np.array(order, dtype=np.intp))).all()
    for count in (1, 3, 50):
        listed, beyond = scores.reaching(count)
        assert (found[~np.isin(order, listed)] <= beyond).all()
    assert [scores.within(slot).max() for slot in order] == found.tolist()
    of_texts, of_asked = (
        np.concatenate([np.empty(0), *(exact(known[slot][kind], query) for slot in order)]) for kind in (0, 1)
    )
    assert measure.unit.count == len(of_texts)
    if order:
        assert scores.best(1)[0].tolist() == [order[int(np.argmax(found))]]
        np.testing.assert_allclose(
            [measure.unit.mean, measure.unit.deviation], [of_texts.mean(), of_texts.std()], atol=1e-5
        )
        np.testing.assert_allclose([measure.asked.mean, measure.asked.deviation], lent(of_asked, of_texts), atol=1e-5)


def test_what_was_asked_counts_as_a_text_that_stands_out_nearly_as_much():
    rng = np.random.default_rng(0)
    texts = OwnTexts(8)
    own = [drawn(rng, 2) for _ in range(5000)]
    asked = [5 * drawn(rng, 20) for _ in range(5000)]  # five times as long, so five times as far apart
    texts.append_many(own, asked)
    query = drawn(rng, 1)[0]
    measure = Measure.of(query, *(moment.moments for moment in texts.moment))
    products = exact(np.concatenate(asked), query)
    deviations = (measure.in_unit(products) - measure.unit.mean) / measure.unit.deviation
    np.testing.assert_allclose(deviations, DISCOUNT * (products - products.mean()) / products.std(), atol=0.1)
    assert measure.in_unit(np.array([-np.inf])).tolist() == [-np.inf]


def test_a_single_question_that_is_asked_again_stands_out():
    rng = np.random.default_rng(1)
    texts = OwnTexts(8)
    own = drawn(rng, 101)
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    query = own[100:]
    texts.append_many(np.split(own[:100], 50), [query, *[drawn(rng, 0)] * 49])
    measure = Measure.of(query[0], *(moment.moments for moment in texts.moment))
    (scores,) = texts.scores([measure], np.ones(50, dtype=bool), texts.moment)
    assert scores.best(1)[0].tolist() == [0]


def test_texts_that_were_saved_with_questions_among_them_are_not_taken():
    texts = OwnTexts(8)
    texts.append_many([np.ones((1, 8), np.float32)], [np.ones((1, 8), np.float32)])
    saved = texts.saved(np.array([0]))
    with pytest.raises(KeyError):
        OwnTexts(8).fill_saved({name: array[:] for name, array in saved.items() if not name.startswith("asked.")})
