"""An index whose writer is killed at any moment opens to exactly what was acknowledged."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from crash_harness import acknowledged, discard, line, run_until_killed, worker
from index_samples import TOY
from index_worker import State, after, digest, state_of

from incdsi.index import Index

WORKER = Path(__file__).with_name("index_worker.py")


def normal(state: State) -> State:
    return {id: [revision, sorted(queries)] for id, (revision, queries) in sorted(state.items())}


def unlike(state: State, expected: State) -> dict[str, object]:
    """The documents that differ, as found and as expected."""
    found, wanted = normal(state), normal(expected)
    return {id: (found.get(id), wanted.get(id)) for id in found | wanted if found.get(id) != wanted.get(id)}


def survive(tmp_path: Path, *, kills: int, readers: int, seed: int) -> None:
    folder = tmp_path / "shop"
    Index.create(folder, TOY, tuning=False).close()
    choice, state, operations, waited_for = random.Random(seed), State(), 0, 0
    with contextlib.ExitStack() as stack:
        forker = stack.enter_context(worker(WORKER, "fork"))
        reading = [stack.enter_context(worker(WORKER, "read", str(folder))) for _ in range(readers)]
        assert [line(process) for process in reading] == ["reading"] * readers
        for _ in range(kills):
            waited_for += (acks := choice.randrange(6))
            said = run_until_killed(forker, folder, choice, acks=acks, within=0.06)
            operations += said.count("ack")
            certain, possible = acknowledged(state, said, after)
            with Index.open(folder, TOY) as index:
                assert index.verify() == []
                state = state_of(index)
                if normal(state) not in (normal(certain), normal(possible)):
                    pytest.fail(f"found {unlike(state, certain)} besides what was certain; it said {said[-4:]}")
                assert len(index) == len(index.search("boots", 1000)) == len(state)
            require_sound_backup(tmp_path / "backup", certain)
            assert all(process.poll() is None for process in reading), "a reader died"
        with Index.open(folder, TOY) as index:
            expected = digest(index)
            for process in reading:
                assert process.stdin is not None
                process.stdin.close()
                found, searches = line(process).split()
                assert found == expected
                assert int(searches) > 0
                assert process.wait() == 0
    discard(tmp_path / "backup")
    assert operations >= waited_for


def require_sound_backup(backup: Path, expected: State) -> None:
    if backup.exists():
        with Index.open(backup, TOY) as copy:
            assert copy.verify() == []
            assert normal(state_of(copy)) == normal(expected)


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    survive(tmp_path, kills=10, readers=3, seed=random.randrange(2**31))


@pytest.mark.slow
def test_two_hundred_and_twenty_kills_with_three_readers(tmp_path: Path) -> None:
    survive(tmp_path, kills=220, readers=3, seed=random.randrange(2**31))


def test_the_crash_test_would_notice_a_loss() -> None:
    said = ['try [["put", "b", 2]]', "ack", 'try [["teach", "a", "lesson"], ["delete", "b"]]']
    certain, possible = acknowledged({"a": [1, []]}, said, after)
    assert certain.keys() == {"a", "b"}
    assert possible == {"a": [1, ["lesson"]]}
