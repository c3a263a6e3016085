"""What every crash test needs: a process that forks writers, a way to kill them, and what they had acknowledged.

Protocol: the forker reads lines `FOLDER SEED AIM`, forks a writer for each, prints its pid, and `dead` when it has
ended. A writer prints `try VERB CHANGES` before and `ack` after each operation, or `error ...`; it comes to the verb
AIM soon, and often.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

ENVIRONMENT = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
State = TypeVar("State")


# In the workers


def say(line: str) -> None:
    """One line in one write: whole in the pipe or not at all."""
    os.write(1, f"{line}\n".encode())


def discard(folder: Path) -> None:
    """Removes a folder so that under its name there is only ever all of it or nothing."""
    trash = folder.with_name("discarded")
    shutil.rmtree(trash, ignore_errors=True)
    if folder.exists():
        os.rename(folder, trash)
    shutil.rmtree(trash, ignore_errors=True)


def ended() -> threading.Event:
    """Set when the input ends."""
    event = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), event.set()), daemon=True).start()
    return event


def fork_writers(write: Callable[[Path, int, str], None]) -> None:
    """One writer a line, each in a fresh fork of this interpreter."""
    for line in sys.stdin:
        folder, seed, aim = line.rstrip("\n").rsplit(" ", 2)
        pid = os.fork()
        if pid == 0:
            try:
                write(Path(folder), int(seed), aim)
            except BaseException as error:
                say(f"error {error!r}")
            os._exit(1)
        say(f"pid {pid}")
        os.waitpid(pid, 0)
        say("dead")


# In the tests


@contextlib.contextmanager
def worker(script: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block ends."""
    with subprocess.Popen(
        [sys.executable, str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    """The next line it says."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def send(process: subprocess.Popen[str], text: str) -> None:
    """Tell it something."""
    assert process.stdin is not None
    process.stdin.write(text)
    process.stdin.flush()


def run_until_killed(
    forker: subprocess.Popen[str], folder: Path, choice: random.Random, *, within: float, aim: str = "", acks: int = 0
) -> list[str]:
    """Starts a writer and kills it within seconds of beginning `aim`, after so many acknowledgements; all it said."""
    send(forker, f"{folder} {choice.randrange(2**31)} {aim}\n")
    pid, said = 0, []
    killer: threading.Timer | None = None
    while (word := line(forker)) != "dead":
        assert word, "the forker died"
        assert not word.startswith("error"), word
        if word.startswith("pid"):
            pid = int(word.split()[1])
        else:
            said.append(word)
        if killer is None and word.startswith(f"try {aim}") and said.count("ack") >= acks:
            assert pid
            killer = threading.Timer(choice.random() * within, os.kill, (pid, signal.SIGKILL))
            killer.start()
    assert killer is not None
    killer.join()
    return said


def verb_of(word: str) -> str:
    """What was tried."""
    return word.split(" ", 2)[1]


def acknowledged(
    state: State, said: list[str], after: Callable[[State, list[list[Any]]], State]
) -> tuple[State, State]:
    """What must be there, and what may be there instead: with the operation in flight."""
    pending: list[list[Any]] = []
    for word in said:
        if word == "ack":
            state, pending = after(state, pending), []
        else:
            pending = json.loads(word.split(" ", 2)[2])
    return state, after(state, pending)
