"""Places for each slot, against lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from incdsi.rows.groups import Groups


@given(st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=4), st.integers(0, 2**32 - 1))
def test_every_place_has_its_slot_and_every_slot_its_places(appended: list[list[int]], seed: int) -> None:
    groups, sizes = Groups(), [size for some in appended for size in some]
    for some in appended:
        groups.append(np.array(some, dtype=np.int64))
    owners = [slot for slot, size in enumerate(sizes) for _ in range(size)]
    values = np.random.default_rng(seed).standard_normal(len(owners))
    everywhere = np.arange(len(sizes))
    places, found = groups.places(everywhere)
    assert (places.tolist(), found.tolist()) == (list(range(len(owners))), sizes)
    assert groups.owners(places).tolist() == owners
    assert groups.each(everywhere).tolist() == owners
    for slots in range(len(sizes) + 1):
        expected = [
            max((values[place] for place in places if owners[place] == slot), default=-np.inf) for slot in range(slots)
        ]
        assert groups.best(values, slots).tolist() == expected


def test_one_place_each_is_the_value_itself() -> None:
    groups = Groups()
    groups.append(np.ones(3, dtype=np.int64))
    assert groups.best(np.array([3.0, -1.0, 2.0]), 2).tolist() == [3.0, -1.0]
