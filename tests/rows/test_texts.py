"""The nearest of a document's own texts, against looking at every one of them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.rows.products import exact
from incdsi.rows.texts import OwnTexts

CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
        st.tuples(st.just("replace"), st.integers(0, 9)),
        st.tuples(st.just("remove"), st.integers(0, 9)),
        st.tuples(st.just("reopen")),
    ),
    max_size=8,
)


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal((count, 8)).astype(np.float32)


@given(CHANGES, st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_after_any_changes_a_document_scores_as_its_nearest_text(changes, seed) -> None:
    rng = np.random.default_rng(seed)
    texts, known, slots = OwnTexts(8), dict[int, np.ndarray](), 0
    for verb, *arguments in changes:
        if verb == "append":
            new = [drawn(rng, count) for count in arguments[0]]
            texts.append_many(new)
            known.update(enumerate(new, start=slots))
            slots += len(new)
        elif verb == "replace" and arguments[0] in known:
            known[slots] = drawn(rng, 2)
            texts.append_many([known[slots]], instead_of=[arguments[0]])
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
    query = drawn(rng, 1)[0]
    alive = np.isin(np.arange(slots), list(known))
    ((scores, spread),) = texts.scores_and_spreads(query[None], alive, texts.moment)
    order = sorted(known)
    nearest = [exact(known[slot], query).max() for slot in order]
    assert scores.exact(np.array(order, dtype=np.intp)).tolist() == nearest
    assert (np.abs(scores.screened[order] - nearest) <= scores.doubt[order]).all()
    everything = np.concatenate([np.empty(0), *(exact(known[slot], query) for slot in order)])
    assert spread.count == len(everything)
    if order:
        best = scores.best(1)[0]
        assert best.tolist() == [order[int(np.argmax(nearest))]]
        np.testing.assert_allclose([spread.mean, spread.deviation], [everything.mean(), everything.std()], atol=1e-5)
