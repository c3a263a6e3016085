from __future__ import annotations

import numpy as np
import pytest

from incdsi.rows.growing import SMALL, Growing


@pytest.mark.parametrize("count", [3, SMALL, 3 * SMALL])
def test_values_that_nobody_can_change_stay_as_they_are_when_others_come(count: int) -> None:
    given = np.arange(count, dtype=np.float64)
    given.flags.writeable = False
    grown = Growing(np.float64)
    grown.append(given)
    before = grown.values
    assert np.shares_memory(before, given) == (count >= SMALL)  # many are not copied
    grown.overwrite(np.array([1]), np.array([-1.0]))
    grown.append(np.array([7.0]))
    np.testing.assert_array_equal(grown.values, [0.0, -1.0, *range(2, count), 7.0])
    np.testing.assert_array_equal(given, np.arange(count))
    assert len(before) == count


def test_values_of_another_kind_are_copied() -> None:
    given = np.arange(SMALL, dtype=np.int32)
    given.flags.writeable = False
    grown = Growing(np.float64)
    grown.append(given)
    assert grown.values.dtype == np.float64
