"""Memory that is given back to the machine, and memory that is kept: arrays in mapped files, and what scans free."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_KEPT = (32 << 20) - (64 << 10)  # bytes: glibc's own limit, less what it needs itself


def let_go(array: NDArray[Any]) -> None:
    """Give back the pages that reading this part of a mapped file has taken; nothing for any other array.

    They stay in the machine's cache of files as long as it has room, and no longer count as this process's memory.
    """
    mapping = _mapping(array)
    if mapping is None or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = array.ctypes.data - np.frombuffer(mapping, dtype=np.uint8).ctypes.data
    start = -(-begin // mmap.PAGESIZE) * mmap.PAGESIZE
    stop = (begin + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE
    if start < stop:
        mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)


def reuse_memory() -> None:
    """Have malloc keep what is freed for what comes next: every scan needs blocks as large as the last one did.

    glibc keeps free memory of up to twice the largest block that was ever freed, and what is given back costs a page
    fault for every 4 KB the next time. Where malloc is another, nothing happens.
    """
    np.empty(MOST_KEPT, dtype=np.uint8)


def file_memory() -> int:
    """Bytes of files that this process has in its memory; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
    except OSError:
        return 0


def _mapping(array: Any) -> mmap.mmap | None:
    """The file's map this array lies in, if nobody can write to it: what was written might be lost."""
    read_only = False
    while isinstance(array, np.ndarray):
        read_only |= isinstance(array, np.memmap) and array.mode == "r"
        array = array.base
    return array if read_only and isinstance(array, mmap.mmap) else None
