"""Small systems on one thread: waking the others costs more than they bring, much more on a busy machine."""

from __future__ import annotations

import functools
from contextlib import AbstractContextManager

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """Linear algebra inside runs on the calling thread."""
    controller, _ = _blas()
    limited: AbstractContextManager[object] = controller.limit(limits=1, user_api="blas")
    return limited


def all_threads() -> AbstractContextManager[object]:
    """Linear algebra inside runs on as many threads as it did before the first `one_thread`."""
    controller, before = _blas()
    limited: AbstractContextManager[object] = controller.limit(limits=before, user_api="blas")
    return limited


@functools.cache
def _blas() -> tuple[ThreadpoolController, int]:
    controller = ThreadpoolController()
    counts = [library["num_threads"] for library in controller.info() if library["user_api"] == "blas"]
    return controller, max(counts, default=1)
