"""Servers in processes of their own, and what the load measures on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from benchmarks.index.run import Result

UNLIMITED = {"INCDSI_RATE": "1000000", "INCDSI_BURST": "1000000"}


@dataclass(frozen=True, kw_only=True)
class Size:
    """How long, and how many documents; `cut` keeps that many."""

    seconds: float = 60.0
    cut: int | None = None
    additions: int = 9000


SMALL = Size(seconds=5.0, cut=60, additions=200)


class Process:
    """A server in a process of its own; its address is the first line it prints."""

    def __init__(self, command: Sequence[str], log: IO[str] | int = subprocess.DEVNULL) -> None:
        environment = {**os.environ, **UNLIMITED}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
        assert self.process.stdout is not None
        said = self.process.stdout.readline()
        if not said:
            raise RuntimeError(f"{' '.join(command)} ended without printing its address")
        self.url: str = json.loads(said)["address"]

    def resident_mb(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    def cpu_seconds(self) -> float:
        spent = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, spent)) / os.sysconf("SC_CLK_TCK")

    def stop(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


@contextmanager
def started(command: Sequence[str], how: signal.Signals = signal.SIGTERM) -> Iterator[Process]:
    """A server for as long as the block lasts."""
    server = Process(command)
    try:
        yield server
    finally:
        server.stop(how)


def ours(folder: Path) -> list[str]:
    command = [sys.executable, "-c", "from incdsi.cli import main; main()", "serve"]
    return [*command, "--index", str(folder / "shop"), "--port", "0", "--json"]


def theirs(folder: Path) -> list[str]:
    return [sys.executable, "-m", "benchmarks.server", "--child", "peer", "--folder", str(folder)]


def measured(server: Process, folder: Path, size: Size) -> Result:
    """The load on a server, its processor time a request, and its memory before and after."""
    memory, before = [server.resident_mb()], server.cpu_seconds()
    command = [sys.executable, "-m", "benchmarks.server", "--child", "load", "--folder", str(folder)]
    command += ["--url", server.url, "--seconds", str(size.seconds)]
    with tempfile.TemporaryFile("w+") as said, subprocess.Popen(command, stdout=said) as child:
        while child.poll() is None:
            time.sleep(1)
            memory.append(server.resident_mb())
        said.seek(0)
        found: Result = json.loads(said.read().splitlines()[-1])
    cpu_ms = 1e3 * (server.cpu_seconds() - before) / max(1, found.pop("requests_with_warming"))
    # The first write makes a server load what only writers need, so the start is that of the load's second quarter.
    settled = memory[len(memory) // 4]
    return {
        **found,
        "cpu_ms_per_request": cpu_ms,
        "memory_before_load_mb": memory[0],
        "memory_start_mb": settled,
        "memory_end_mb": memory[-1],
        "memory_mb_every_second": [round(mb, 1) for mb in memory],
    }
