"""The rule that chooses: new documents count as far as old ones are kept."""

from __future__ import annotations

from operator import itemgetter

from hypothesis import given
from hypothesis import strategies as st

from incdsi_lab.tuning import best_keeping

OLD, NEW = itemgetter(0), itemgetter(1)
points = st.tuples(st.floats(0, 100), st.floats(0, 100))


def test_what_keeps_old_documents_and_finds_most_new_ones_is_chosen():
    tried = [(58.7, 58.2), (47.5, 72.9), (59.0, 53.8)]
    assert best_keeping(tried, OLD, NEW, level=58.4) == (58.7, 58.2)


def test_where_nothing_keeps_them_the_nearest_is_chosen():
    assert best_keeping([(40.0, 80.0), (50.0, 60.0)], OLD, NEW, level=55.0) == (50.0, 60.0)


def test_of_equals_the_first_is_chosen():
    tried = [(60.0, 50.0), (61.0, 50.0)]
    assert best_keeping(tried, OLD, NEW, level=60.0) is tried[0]


def test_what_was_not_measured_is_worth_less_than_anything():
    nothing = float("nan")
    assert best_keeping([(60.0, nothing), (60.0, 0.0)], OLD, NEW, level=60.0) == (60.0, 0.0)
    assert best_keeping([(nothing, 90.0), (10.0, 0.0)], OLD, NEW, level=60.0) == (10.0, 0.0)


@given(st.lists(points, min_size=1), st.floats(0, 100))
def test_no_point_that_keeps_old_documents_is_better_for_new_ones(tried, level):
    old, new = best_keeping(tried, OLD, NEW, level)
    kept = [point for point in tried if point[0] >= level]
    assert all(other <= new for _, other in kept) if kept else old == max(map(OLD, tried))
    assert (old >= level) == bool(kept)
