"""An index whose writer is killed at any moment opens to exactly what was acknowledged."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from crash_harness import acknowledged
from crash_survival import begin, survive, unlike
from index_worker import after, state_of

from incdsi.index import Index

pytestmark = pytest.mark.folder


@pytest.mark.parametrize(("kills", "readers"), [(10, 2), pytest.param(220, 3, marks=pytest.mark.slow)])
def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path, kills: int, readers: int) -> None:
    tally = survive(tmp_path / "shop", kills=kills, readers=readers, seed=random.randrange(2**31))
    assert (tally.lost, tally.torn) == ([], [])
    assert sum(tally.kills.values()) + tally.between == kills
    assert tally.searches > 0


def test_the_crash_test_would_notice_a_loss(tmp_path: Path) -> None:
    state = begin(tmp_path / "shop")
    said = ['try add [["put", "doc-1", 2]]', "ack", 'try teach [["ask", "doc-1", "lesson"]]']
    certain, possible = acknowledged(state, said, after)
    with Index.open(tmp_path / "shop") as index:
        found = state_of(index, tmp_path / "shop")
    assert unlike(found, certain).keys() == {"doc-1"}
    assert unlike(certain, possible).keys() == {"doc-1"}
