"""The processor's cores, and a thread for each that whatever comes in large pieces shares."""

from __future__ import annotations

import functools
import os
from concurrent.futures import ThreadPoolExecutor


@functools.cache
def threads() -> ThreadPoolExecutor:
    """A thread for each core; those of other libraries, BLAS for one, stay as the process has set them."""
    return ThreadPoolExecutor(count(), thread_name_prefix="incdsi-cores")


os.register_at_fork(after_in_child=threads.cache_clear)  # a fork leaves its threads behind


def count() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
