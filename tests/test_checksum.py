"""A checksum finds every kind of rot, however the bytes come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.checksum import BLOCK, ROW, Checksum, file_checksum

PAGE = 4096
CONTENT = np.random.default_rng(0).integers(0, 256, 2 * BLOCK + 3 * ROW + 13, dtype=np.uint8)


def checksum(*parts: object) -> str:
    found = Checksum()
    for part in parts:
        found.update(part)
    return found.hexdigest()


@given(st.lists(st.integers(0, len(CONTENT)), max_size=5))
def test_it_is_the_same_in_whatever_parts_the_bytes_come(cuts: list[int]) -> None:
    assert checksum(*(part.data for part in np.split(CONTENT, sorted(cuts)))) == checksum(CONTENT.data)


def test_it_is_the_same_on_every_machine(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(256)) * 20)
    assert file_checksum(tmp_path / "file") == "0a42a1dcd2828556c966b386c961ea42e5f3f8639dcacd5447822b8dd758783c"
    assert checksum() == checksum(b"") == "9d4e9038bfe86a9c97688e56ccd91c848bbef20d631a7cce970645162bd478ef"


def test_a_file_of_any_length_has_the_checksum_of_its_bytes(tmp_path: Path) -> None:
    for length in (0, 1, 7, 8, ROW - 1, ROW, BLOCK - 1, BLOCK, BLOCK + 9, len(CONTENT)):
        (tmp_path / "file").write_bytes(CONTENT[:length].tobytes())
        assert file_checksum(tmp_path / "file") == checksum(CONTENT[:length].data)


@given(st.integers(0, len(CONTENT) - 1), st.integers(0, 7))
def test_it_finds_every_flipped_bit(place: int, bit: int) -> None:
    damaged = CONTENT.copy()
    damaged[place] ^= 1 << bit
    assert checksum(damaged.data) != checksum(CONTENT.data)


@pytest.mark.parametrize(("one", "other"), [(0, 1), (0, 2), (3, 200), (1, 130), (126, 127)])
def test_it_finds_pages_that_were_zeroed_or_lie_in_each_others_place(one: int, other: int) -> None:
    whole = checksum(CONTENT.data)
    here, there = (slice(PAGE * number, PAGE * (number + 1)) for number in (one, other))
    zeroed, moved, swapped = CONTENT.copy(), CONTENT.copy(), CONTENT.copy()
    zeroed[here] = 0
    moved[here] = CONTENT[there]
    swapped[here], swapped[there] = CONTENT[there], CONTENT[here]
    assert whole not in {checksum(found.data) for found in (zeroed, moved, swapped)}


@pytest.mark.parametrize("length", [1, 8, ROW, BLOCK])
def test_it_finds_a_missing_end_even_one_of_zeros(length: int) -> None:
    longer = np.concatenate([CONTENT, np.zeros(length, np.uint8)])
    assert len({checksum(found.data) for found in (CONTENT, longer, CONTENT[:-length])}) == 3
