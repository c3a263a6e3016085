"""let_go: memory is given back, nothing that can be read is lost; reuse_memory: what is freed is kept."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.mapped import file_memory, let_go


def resident_kb(array: NDArray[Any]) -> int:
    """How much of the map that this array lies in is in memory."""
    found = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if span := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            found = int(span[1], 16) <= array.ctypes.data < int(span[2], 16)
        elif found and line.startswith("Rss:"):
            return int(line.split()[1])
    raise AssertionError("not mapped")


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="no /proc")
def test_pages_of_a_mapped_file_go_and_come_back(tmp_path: Path) -> None:
    numbers = np.arange(1 << 20)
    numbers.tofile(tmp_path / "numbers")
    mapped = np.memmap(tmp_path / "numbers", dtype=np.uint8, mode="r")
    part = np.asarray(mapped[64:].view(np.int64)[10:])
    total = part.sum()
    before, files = resident_kb(part), file_memory()
    let_go(part)
    assert file_memory() < files - (1 << 20)
    assert resident_kb(part) < before / 100
    assert part.sum() == total


@pytest.mark.parametrize("mode", ["r+", "c", None])
def test_what_can_be_written_to_is_left_alone(tmp_path: Path, mode: Any) -> None:
    np.zeros(1 << 16).tofile(tmp_path / "numbers")
    numbers = np.memmap(tmp_path / "numbers", dtype=np.float64, mode=mode) if mode else np.zeros(1 << 16)
    numbers[:] = 7.0
    view = numbers[:]
    view.flags.writeable = False
    let_go(view)
    assert (view == 7.0).all()


FAULTS = """
import resource, sys
import numpy as np
from incdsi.mapped import reuse_memory
if sys.argv[1] == "reuse":
    reuse_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    [np.ones(1 << 18) for _ in range(8)]
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another malloc")
def test_memory_that_a_scan_freed_is_used_by_the_next_one() -> None:
    again, anew = (
        int(subprocess.run([sys.executable, "-c", FAULTS, how], capture_output=True, check=True, text=True).stdout)
        for how in ("reuse", "")
    )
    assert again < anew / 4
