"""Preserve rows that lie among a document's own texts answer as if they were kept apart."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.rows import LocalRows
from incdsi.rows.int8 import Int8
from incdsi.rows.pool import OWN
from incdsi.rows.texts import OwnTexts

H = 8
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 6)),
        st.tuples(st.just("replace"), st.integers(0, 30)),
        st.tuples(st.just("remove"), st.integers(0, 30)),
        st.tuples(st.just("lift"), st.integers(0, 30)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    min_size=1,
    max_size=10,
)


@pytest.fixture(autouse=True)
def _small_blocks_of_whole_numbers() -> Iterator[None]:
    """Sums of whole numbers have the same bits wherever rows lie; those of the floats that other tests try do not."""
    with patch("incdsi.rows.table.BLOCK_ROWS", 8), patch("incdsi.rows.local.Int8", Int8):
        yield


def drawn(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.standard_normal((count, H)).astype(np.float32)


class Twice:
    """The same documents twice: their preserve rows among their texts where they can be, and kept apart."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.texts = OwnTexts(H)
        self.shared, self.apart = LocalRows(H, beside=self.texts.tables), LocalRows(H)
        self.own: dict[int, np.ndarray] = {}  # texts and questions by slot

    def append(self, count: int, instead_of: tuple[int, ...] = ()) -> None:
        texts = [drawn(self._rng, self._rng.integers(1, 5)) for _ in range(count)]
        texts[0][-1] = texts[0][0] * self._rng.integers(0, 2)  # the same one again, or nothing
        asked = [drawn(self._rng, self._rng.integers(0, 3)) for _ in range(count)]
        self.texts.append_many(texts, asked, instead_of)
        slots = range(len(self.apart.alive), len(self.apart.alive) + count)
        self.own.update(zip(slots, (np.concatenate(some) for some in zip(texts, asked, strict=True)), strict=True))
        vectors, rows = list(drawn(self._rng, count)), [self._preserved(slot) for slot in slots]
        self.shared.append_many(vectors, rows, instead_of, self.texts.find(slots, rows))
        self.apart.append_many(vectors, rows, instead_of)
        for slot in instead_of:
            del self.own[slot]

    def _preserved(self, slot: int) -> np.ndarray:
        """Some of a slot's own in any order, one of them perhaps twice, and others."""
        own = self.own[slot]
        some = own[self._rng.integers(0, len(own), self._rng.integers(0, 4))]
        return self._rng.permutation(np.concatenate([some, drawn(self._rng, self._rng.integers(0, 2))]))

    def remove(self, slot: int) -> None:
        for rows in (self.shared, self.apart, self.texts):
            rows.remove_many([slot])
        del self.own[slot]

    def lift(self, slot: int) -> None:
        vector, rows = drawn(self._rng, 1), [self._preserved(slot)]
        for some in (self.shared, self.apart):
            some.lift([slot])
        self.shared.put_back([slot], vector, rows, self.texts.find([slot], rows))
        self.apart.put_back([slot], vector, rows)

    def reopen(self) -> None:
        slots = np.array(sorted(self.own), dtype=np.intp)
        texts, shared = self.texts.saved(slots), self.shared.saved(slots, self.texts.indices(slots))
        apart = self.apart.saved(slots)
        self.texts = OwnTexts(H)
        self.shared, self.apart = LocalRows(H, beside=self.texts.tables), LocalRows(H)
        self.texts.fill_saved({name: array[:] for name, array in texts.items()})
        self.shared.fill_saved({name: array[:] for name, array in shared.items()}, preserve=True)
        self.apart.fill_saved({name: array[:] for name, array in apart.items()}, preserve=True)
        self.own = dict(enumerate(self.own[slot] for slot in slots.tolist()))

    def change(self, verb: str, which: int) -> None:
        if verb == "append":
            self.append(which)
        elif verb == "reopen":
            self.reopen()
        elif self.own:
            slot = sorted(self.own)[which % len(self.own)]
            {"replace": lambda: self.append(1, (slot,)), "remove": lambda: self.remove(slot)}.get(
                verb, lambda: self.lift(slot)
            )()


@given(CHANGES, st.integers(0, 2**32 - 1), st.integers(1, 20), st.sampled_from([1, 20]))
@settings(max_examples=150, deadline=None)
def test_who_is_near_does_not_depend_on_where_rows_lie(changes, seed, limit, count) -> None:
    rng = np.random.default_rng(seed)
    both = Twice(rng)
    for change in changes:
        both.change(*change)
    for found, expected in zip(both.shared.preserve_arrays(), both.apart.preserve_arrays(), strict=True):
        np.testing.assert_array_equal(found, expected)
    vectors = 2 * rng.standard_normal((count, H))
    for without in (None, *sorted(both.own)[:1]):
        shared, apart = (rows.under(0.5, without) for rows in (both.shared, both.apart))
        assert len(shared) == len(apart)
        for one, other in zip(shared.nearest(vectors, limit), apart.nearest(vectors, limit), strict=True):
            assert one.radius == other.radius
            for name in ("indices", "owners", "rows", "ceilings"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_only_what_is_not_among_the_texts_is_kept_and_saved_apart() -> None:
    rng = np.random.default_rng(0)
    texts, asked, other = drawn(rng, 3), drawn(rng, 2), drawn(rng, 1)
    own = OwnTexts(H)
    own.append_many([drawn(rng, 2), texts], [drawn(rng, 1), asked])
    rows = np.concatenate([asked[1:], other, texts[1:], texts[1:2]])
    (where,) = own.find([1], [rows])
    assert where.tables.tolist() == [2, OWN, 1, 1, OWN]  # the last one has its like already
    assert where.indices[[0, 2, 3]].tolist() == [2, 3, 4]
    kept = LocalRows(H, beside=own.tables)
    kept.append_many([texts[0]], [rows], where=[where])
    saved = kept.saved(np.array([0]), own.indices(np.array([0, 1])))
    np.testing.assert_array_equal(saved["preserve.rows"][:], rows[[1, 4]])
    assert saved["preserve.indices"].tolist() == [2, 0, 3, 4, 1]


def test_zeros_among_the_texts_constrain_nobody() -> None:
    texts = OwnTexts(H)
    rows = np.array([np.zeros(H), np.ones(H)], dtype=np.float32)
    texts.append_many([rows], [rows[:0]])
    kept = LocalRows(H, beside=texts.tables)
    kept.append_many([rows[1]], [rows], where=texts.find([0], [rows]))
    assert len(kept.under(1.0)) == 1
    (near,) = kept.under(1.0).nearest(np.ones((1, H)), 0)
    assert near.radius < 0


def test_rows_beyond_the_texts_they_are_said_to_be_are_refused() -> None:
    texts = OwnTexts(H)
    rows = drawn(np.random.default_rng(0), 2)
    texts.append_many([rows], [rows[:0]])
    kept = LocalRows(H, beside=texts.tables)
    kept.append_many([rows[0]], [rows], where=texts.find([0], [rows]))
    saved = {name: array[:] for name, array in kept.saved(np.array([0]), texts.indices(np.array([0]))).items()}
    with pytest.raises(ValueError, match="read anew"):
        LocalRows(H, beside=OwnTexts(H).tables).fill_saved(saved, preserve=True)


@pytest.mark.parametrize("others", [0, 1, 40])
def test_a_pass_multiplies_few_rows_that_are_not_preserved(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    texts = OwnTexts(H)
    kept = LocalRows(H, beside=texts.tables)
    for slot in range(100):
        rows = drawn(rng, 2 + others)
        texts.append_many([rows], [rows[:0]])
        kept.append_many([rows[0]], [rows[:2]], where=texts.find([slot], [rows[:2]]))
    seen: list[int] = []
    screen = texts.tables[0].screen
    multiply = screen.multiply
    monkeypatch.setattr(screen, "multiply", lambda codes, asked: (seen.append(len(codes)), multiply(codes, asked))[1])
    kept.under(0.5).nearest(rng.standard_normal((1, H)), 5)
    assert 200 <= sum(seen) <= 400
