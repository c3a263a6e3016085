"""An index whose writer is killed at any moment opens to exactly what was acknowledged."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_worker import discard
from index_samples import TOY
from index_worker import Change, State, after, digest, state_of
from test_store_crash import ENVIRONMENT, line, send

from incdsi.index import Index

WORKER = Path(__file__).with_name("index_worker.py")


@contextlib.contextmanager
def worker(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(WORKER), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def run_until_killed(forker: subprocess.Popen[str], folder: Path, choice: random.Random) -> list[str]:
    """Starts a writer, kills it a moment after some acknowledgements, returns all it said."""
    send(forker, f"{folder} {choice.randrange(2**31)}\n")
    wanted, pid, said = choice.randrange(6), 0, []
    killer: threading.Timer | None = None
    while (word := line(forker)) != "dead":
        assert word, "the forker died"
        assert not word.startswith("error"), word
        if word.startswith("pid"):
            pid = int(word.split()[1])
        else:
            said.append(word)
        if pid and killer is None and said.count("ack") >= wanted:
            killer = threading.Timer(choice.random() * 0.06, os.kill, (pid, signal.SIGKILL))
            killer.start()
    assert killer is not None
    killer.join()
    return said


def acknowledged(state: State, said: list[str]) -> tuple[State, State]:
    """What must be there, and what may be there instead: with the operation in flight."""
    pending: list[Change] = []
    for word in said:
        if word == "ack":
            state, pending = after(state, pending), []
        else:
            pending = json.loads(word.removeprefix("try "))
    return state, after(state, pending)


def normal(state: State) -> State:
    return {id: [revision, sorted(queries)] for id, (revision, queries) in sorted(state.items())}


def survive(tmp_path: Path, *, kills: int, readers: int, seed: int) -> None:
    folder = tmp_path / "shop"
    Index.create(folder, TOY, tuning=False).close()
    choice, state, operations = random.Random(seed), State(), 0
    with contextlib.ExitStack() as stack:
        forker = stack.enter_context(worker("fork"))
        reading = [stack.enter_context(worker("read", str(folder))) for _ in range(readers)]
        assert [line(process) for process in reading] == ["reading"] * readers
        for _ in range(kills):
            said = run_until_killed(forker, folder, choice)
            operations += said.count("ack")
            certain, possible = acknowledged(state, said)
            with Index.open(folder, TOY) as index:
                assert index.verify() == []
                state = state_of(index)
                assert normal(state) in (normal(certain), normal(possible))
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
    assert operations > kills // 2  # as many as were waited for, and more


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
    certain, possible = acknowledged({"a": [1, []]}, said)
    assert certain.keys() == {"a", "b"}
    assert possible == {"a": [1, ["lesson"]]}
