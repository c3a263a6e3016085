"""What every part of the benchmark shares: sizes, the run, and how figures are spread."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.real import RealData, real_data
from incdsi.progress import Progress

Result = dict[str, Any]
Floats = NDArray[np.float32]
Ranks = NDArray[np.intp]
MODES = ("learned", "lexical", "fused")
WARM = 5  # adds and searches before the timed ones


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much of everything; `cut` keeps that many documents of a real set."""

    cut: int | None = None
    singles: int = 200
    batch: int = 1024
    searches: int = 500
    scale: int = 100_000
    rounds: int = 10_000
    rounds_index: int = 2_000


SMALL = Size(cut=60, singles=5, batch=16, searches=10, scale=600, rounds=200, rounds_index=100)


@dataclass(frozen=True, kw_only=True)
class Run:
    """How much, and the folder where this run's indexes are; quality is judged on so many `documents`, or on all."""

    size: Size
    folder: Path
    small: bool
    documents: int | None = None

    def data(self, name: str) -> RealData:
        """A real set; its first documents in a small run, from the copy that `cut_sets` made."""
        return real_data(str(self.folder / name) if self.small else name)

    def child(self, part: str) -> Result:
        """What a part finds in a process of its own; CalledProcessError when it fails."""
        command = [sys.executable, "-m", "benchmarks.index", "--child", part, "--folder", str(self.folder)]
        command += ["--small"] if self.small else []
        command += ["--documents", str(self.documents)] if self.documents else []
        environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ}  # as the command line and the server have it
        child = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
        found: Result = json.loads(child.stdout.splitlines()[-1])
        return found


def say(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def tenths(what: str) -> Progress:
    """A progress callback that says each tenth once."""
    begin, said = time.perf_counter(), 0

    def progress(done: int, total: int) -> None:
        nonlocal said
        if 10 * done // total > said:
            said = 10 * done // total
            say(f"{what}: {done:,} of {total:,} after {time.perf_counter() - begin:.0f} s")

    return progress


def spread(seconds: Sequence[float]) -> Result:
    """Median, 99th percentile and mean in ms, with their number."""
    ms = 1e3 * np.asarray(seconds)
    p50, p99 = np.percentile(ms, [50, 99])
    return {"p50_ms": float(p50), "p99_ms": float(p99), "mean_ms": float(ms.mean()), "n": len(ms)}


def disk_mb(folder: Path) -> dict[str, float]:
    """MB on disk by the first name below the folder."""
    sizes: dict[str, float] = {}
    for path in (path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).parts[0]
        sizes[name] = sizes.get(name, 0.0) + path.stat().st_size / 1e6
    return sizes
