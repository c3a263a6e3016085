"""A writer killed at any moment loses nothing it acknowledged and leaves nothing half-done."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest
from crash_harness import acknowledged, discard, line, run_until_killed, worker
from crash_worker import Change, Mirror, require_whole, revision_of
from store_samples import content, sample

from incdsi.store import Store

WORKER = Path(__file__).with_name("crash_worker.py")
State = dict[str, int]


def after(state: State, changes: list[Change]) -> State:
    new = dict(state)
    for verb, id, *revision in changes:
        if verb == "put":
            new[id] = revision[0]
        else:
            del new[id]
    return new


def state_of(store: Store) -> State:
    found = {}
    for record in store.changes(0).upserts:
        require_whole(record)
        found[record.document.id] = revision_of(record)
    return found


def survive(tmp_path: Path, *, kills: int, readers: int, seed: int) -> None:
    folder = tmp_path / "shop"
    Store.create(folder, {}).close()
    choice, state, version, operations, waited_for = random.Random(seed), State(), 0, 0, 0
    with contextlib.ExitStack() as stack:
        forker = stack.enter_context(worker(WORKER, "fork"))
        reading = [stack.enter_context(worker(WORKER, "read", str(folder))) for _ in range(readers)]
        for _ in range(kills):
            waited_for += (acks := choice.randrange(4))
            said = run_until_killed(forker, folder, choice, acks=acks, within=0.15)
            operations += said.count("ack")
            certain, possible = acknowledged(state, said, after)
            with Store.open(folder, writer=choice.random() < 0.5) as store:
                assert store.verify() == []
                state = state_of(store)
                assert state in (certain, possible)
                assert store.version >= version
                version = store.version
            if (tmp_path / "backup").exists():
                with Store.open(tmp_path / "backup", writer=False) as backup:
                    assert backup.verify() == []
                    assert state_of(backup) in (certain, {})
        with Store.open(folder, writer=True) as store:
            mirror = Mirror(store)
            mirror.pull()
            for process in reading:
                assert process.stdin is not None
                process.stdin.close()
                digest, pulls = line(process).split()
                assert digest == mirror.digest()
                assert int(pulls) > 0
                assert process.wait() == 0
            discard(tmp_path / "backup")
            store.backup(tmp_path / "backup")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "shop"]
    assert operations >= waited_for


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    survive(tmp_path, kills=12, readers=1, seed=random.randrange(2**31))


@pytest.mark.slow
def test_two_hundred_and_fifty_kills_with_three_readers(tmp_path: Path) -> None:
    survive(tmp_path, kills=250, readers=3, seed=random.randrange(2**31))


def test_the_crash_test_would_notice_a_loss() -> None:
    certain, possible = acknowledged(
        {"a": 1}, ['try write [["put", "b", 2]]', "ack", 'try write [["delete", "a"]]'], after
    )
    assert (certain, possible) == ({"a": 1, "b": 2}, {"b": 2})
    assert content(sample("a", 1)) != content(sample("a", 2))
