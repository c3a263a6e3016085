"""Int8: its bound holds for any finite rows, and its every bit is the same however it multiplies."""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incdsi.preserve import Nearest
from incdsi.rows import LocalRows
from incdsi.rows.int8 import FEW, Int8
from tests.rows.screens import Int8ByBlas

simsimd = pytest.importorskip("simsimd")
Floats = NDArray[np.float32]
LARGEST, DENORMAL = np.finfo(np.float32).max, np.float32(1e-45)
SCALES = (1.0, 1e-45, 1e-39, 1e-20, 1e-14, 1e-3, 1e3, 1e13, 1e18, 1e30, 1e38)


def strange(kind: str, rng: np.random.Generator, count: int, width: int) -> Floats:
    """Rows that rounding to 8 bits treats worst."""
    rows = rng.standard_normal((count, width))
    if kind == "zeros":
        rows[:] = 0.0
    elif kind == "one big coordinate":
        rows[:, 0] = 1e6
    elif kind == "halves":  # as far from whole numbers as can be
        rows = rng.integers(-126, 126, (count, width)) + 0.5
        rows[:, 0] = 127.0
    elif kind == "few bits":
        rows = np.sign(rows)
    elif kind == "every size":
        rows *= 10.0 ** rng.uniform(-30, 30, (count, width))
    elif kind == "denormals":
        rows = rng.integers(-3, 4, (count, width)) * float(DENORMAL)
    elif kind == "largest":
        rows = np.sign(rows) * float(LARGEST)
    return np.clip(rows, -LARGEST, LARGEST).astype(np.float32)


KINDS = ("plain", "zeros", "one big coordinate", "halves", "few bits", "every size", "denormals", "largest")


def screened(screen: Int8, rows: Floats, vectors: Floats) -> tuple[Floats, NDArray[np.float64]]:
    coded, asked = screen.coded(rows), screen.asked(vectors)
    products = screen.multiply(coded.codes, asked) * coded.scales[:, None]
    return products, asked.doubt(coded.errors[:, None], coded.lengths[:, None])


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.sampled_from(SCALES),
    st.sampled_from(SCALES),
    st.sampled_from([1, FEW, FEW + 1]),
)
@settings(max_examples=300, deadline=None)
def test_no_product_is_further_from_the_truth_than_its_doubt(seed, rows_kind, kind, rows_scale, scale, b):
    rng = np.random.default_rng(seed)
    width = int(rng.integers(1, 40))
    with np.errstate(over="ignore"):
        rows = np.clip(strange(rows_kind, rng, 4, width) * np.float32(rows_scale), -LARGEST, LARGEST)
        vectors = np.clip(strange(kind, rng, b, width) * np.float32(scale), -LARGEST, LARGEST)
    found, doubt = screened(Int8(), rows, vectors)
    assert np.isfinite(found).all()
    for i, j in itertools.product(range(4), range(b)):
        true = sum(Fraction(float(x)) * Fraction(float(v)) for x, v in zip(rows[i], vectors[j], strict=True))
        assert abs(Fraction(float(found[i, j])) - true) <= Fraction(float(doubt[i, j]))


@pytest.mark.parametrize(("b", "most"), [(1, 0.02), (FEW, 0.02), (FEW + 1, 0.01)])
def test_at_an_encoders_width_the_doubt_is_about_a_hundredth(b: int, most: float) -> None:
    rng = np.random.default_rng(0)
    rows, vectors = strange("plain", rng, 100, 384), strange("plain", rng, b, 384)
    _, doubt = screened(Int8(), rows, vectors)
    assert (doubt / np.outer(np.linalg.norm(rows, axis=1), np.linalg.norm(vectors, axis=1))).mean() < most


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("width", [1, 7, 384, 3000])
@pytest.mark.parametrize("b", [1, 3, FEW + 1])
def test_sums_are_exact_in_float32_so_nobody_can_tell_who_added_them_up(kind: str, width: int, b: int) -> None:
    rng = np.random.default_rng(width)
    coded = Int8().coded(strange(kind, rng, 50, width))
    asked = Int8().asked(strange(kind, rng, b, width))
    summed = coded.codes.astype(np.float64) @ asked.codes.astype(np.float64).T  # exact there
    np.testing.assert_array_equal(summed.astype(np.float32), summed)
    for screen in (Int8(), Int8ByBlas()):
        np.testing.assert_array_equal(screen.multiply(coded.codes, asked), summed.astype(np.float32) * asked.scales)


def test_every_kernel_of_simsimd_gives_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    coded = Int8().coded(strange("few bits", rng, 200, 3000))  # as large as sums of 8 bits can be
    asked = Int8().asked(np.sign(rng.standard_normal((2, 3000))).astype(np.float32))
    expected = Int8ByBlas().multiply(coded.codes, asked)
    there = [name for name, has in simsimd.get_capabilities().items() if has and name != "serial"]
    try:
        for name in [None, *reversed(there)]:
            if name:
                simsimd.disable_capability(name)
            np.testing.assert_array_equal(Int8().multiply(coded.codes, asked), expected)
    finally:
        for name in there:
            simsimd.enable_capability(name)


@pytest.mark.parametrize("b", [1, 3])
@pytest.mark.parametrize("count", [1, 20])
def test_multiplying_takes_no_reference_too_many_or_too_few(b: int, count: int) -> None:
    """simsimd returns None without a reference of its own when it is given an array to write into."""
    rows, vectors = np.ones((count, 24), dtype=np.float32), np.ones((b, 24), dtype=np.float32)
    codes, asked = Int8().coded(rows).codes, Int8().asked(vectors)
    before = [sys.getrefcount(one) for one in (None, codes, asked.codes)]
    for _ in range(500):
        Int8().multiply(codes, asked)
    after = [sys.getrefcount(one) for one in (None, codes, asked.codes)]
    assert np.abs(np.subtract(after, before)).max() < 100


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("vectors_kind", ["plain", "one big coordinate", "denormals"])
def test_strange_documents_among_plain_ones_are_ranked_and_preserved_exactly(kind: str, vectors_kind: str) -> None:
    rng = np.random.default_rng(1)
    width = 12
    vectors = np.concatenate([strange("plain", rng, 300, width), strange(kind, rng, 5, width)])[rng.permutation(305)]
    asked = np.concatenate([strange(vectors_kind, rng, 3, width), strange("plain", rng, FEW, width)])
    rows = LocalRows(width, Int8())
    rows.append_many(list(vectors), [vector[None] for vector in vectors])
    true = vectors.astype(np.float64) @ asked.astype(np.float64).T
    scores, slots = rows.best(asked)
    for column, query in enumerate(asked):
        order = np.lexsort((np.arange(305), -true[:, column]))
        assert true[slots[column], column] == pytest.approx(true[order[0], column], rel=1e-12, abs=1e-300)
        assert rows.scores(query).best(10)[1] == pytest.approx(true[order[:10], column], rel=1e-12, abs=1e-300)
    assert scores == pytest.approx(true.max(axis=0), rel=1e-12, abs=1e-300)


def test_an_index_with_strange_rows_still_proves_who_is_near() -> None:
    rng = np.random.default_rng(2)
    kinds = [strange(kind, rng, 40, 8) for kind in ("plain", "one big coordinate", "every size", "few bits")]
    queries = np.concatenate([*kinds, np.full((1, 8), 1e-16), np.full((1, 8), 1e17)]).astype(np.float32)
    rows = LocalRows(8, Int8())
    rows.append_many(list(strange("plain", rng, len(queries), 8)), [query[None] for query in queries])
    ceilings = rows.under(0.5)
    _, flat, own = rows.preserve_arrays()
    flat, own = flat.astype(np.float64), own - 0.5
    for vectors in (rng.standard_normal((1, 8)), rng.standard_normal((FEW + 2, 8))):
        for vector, near in zip(vectors, ceilings.nearest(vectors, 16), strict=True):
            others = np.setdiff1d(np.arange(len(flat)), near.indices)
            slack = (own[others] - flat[others] @ vector) / np.linalg.norm(flat[others], axis=1)
            assert (slack >= near.radius).all()


@pytest.mark.parametrize("b", [1, FEW, FEW + 1])
def test_who_is_near_and_how_far_that_is_proved_does_not_depend_on_the_library(b: int) -> None:
    found: list[list[Nearest]] = []
    for screen in (Int8(), Int8ByBlas()):
        rng = np.random.default_rng(3)
        rows = LocalRows(24, screen)
        rows.append_many(list(strange("plain", rng, 500, 24)), list(rng.standard_normal((500, 3, 24))))
        found.append(rows.under(0.3).nearest(rng.standard_normal((b, 24)), 40))
    for one, other in zip(*found, strict=True):
        assert one.radius == other.radius
        np.testing.assert_array_equal(one.indices, other.indices)
