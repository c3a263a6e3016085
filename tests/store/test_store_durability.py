"""Acknowledged means fsynced: what the kernel was really told, seen from outside the process."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
import numpy as np
from store_samples import sample
from incdsi.store import Store
store = Store.create(sys.argv[1], {})
def ack():
    os.write(1, b"ack")
ack()
for number in range(3):
    with store.transaction() as tx:
        tx.insert(sample(f"d{number}"))
    ack()
with store.transaction() as tx:
    tx.replace("d0", sample("d0", 1))
    tx.delete("d1")
ack()
store.write_base({"rows": np.arange(5)}, store.version)
ack()
"""


def traced(folder: Path) -> list[str]:
    """The writes, syncs and renames of the script, in order, one line each."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    log = folder / "trace"
    calls = "trace=write,pwrite64,pwritev,fsync,fdatasync,rename,ftruncate"
    done = subprocess.run(
        [strace, "-y", "-o", str(log), "-e", calls, sys.executable, "-c", SCRIPT, str(folder / "shop")],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    if "ptrace" in done.stderr.lower():
        pytest.skip(f"tracing is not permitted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return log.read_text().splitlines()


def before_each_acknowledgement(lines: list[str]) -> list[list[tuple[str, str]]]:
    """For each acknowledgement, the (call, file name) pairs since the one before."""
    steps: list[list[tuple[str, str]]] = [[]]
    for text in lines:
        match = re.match(r"(\w+)\((?:\d+<([^>]*)>)?", text)
        if match and match[1] == "write" and '"ack"' in text:
            steps.append([])
        elif match:
            steps[-1].append((match[1], Path(match[2] or "").name))
    return steps[:-1]


def test_nothing_is_acknowledged_before_it_is_on_the_disk(tmp_path: Path) -> None:
    created, *transactions, based = before_each_acknowledgement(traced(tmp_path))
    assert ("fsync", "store.db") in created[: created.index(("rename", ""))]
    assert len(transactions) == 4
    for calls in [*transactions, based]:
        log = [call for call, name in calls if name == "store.db-wal"]
        assert "pwrite64" in log
        assert log[-1] in ("fdatasync", "fsync")
    assert ("fdatasync", "shop") in transactions[0]  # the name of a new log too, as powerloss_recorder.py takes it
    at = based.index(("rename", ""))
    assert ("fsync", "base.1.bin.tmp") in based[:at]
    assert ("fsync", "shop") in based[at:]
    assert based.index(("pwrite64", "store.db-wal")) > at
