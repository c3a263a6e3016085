"""What a figure was measured on, and where results go."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from incdsi_lab.report.machine import machine

__all__ = ["RESULTS", "held_mb", "machine", "peak_mb", "resident_mb", "write"]

RESULTS = Path(__file__).parent / "results"


def resident_mb() -> float:
    """Memory this process holds now, in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def held_mb() -> float:
    """The same without what is free already and glibc keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    return resident_mb()


def peak_mb() -> float:
    """The most memory this process ever held, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def write(name: str, results: dict[str, Any]) -> Path:
    """Store results with the machine and the command that made them."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    module = sys.modules["__main__"].__spec__
    command = " ".join(["python -m", module.name if module else name, *sys.argv[1:]])
    when = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    whole = {"command": command, "when": when, "machine": machine(), **results}
    path.write_text(json.dumps(whole, indent=1, allow_nan=False) + "\n")
    return path
