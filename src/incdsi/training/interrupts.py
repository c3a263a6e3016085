"""Ctrl-C that never interrupts a step."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Inside the block, the first Ctrl-C only sets `pending`; a second one is raised at once.

    Outside the main thread, or if Ctrl-C is ignored, it does nothing.
    """

    def __init__(self) -> None:
        self.pending = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        usable = threading.current_thread() is threading.main_thread()
        if usable and callable(signal.getsignal(signal.SIGINT)):
            self._previous = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.pending:
            raise KeyboardInterrupt("training stopped in the middle of a step; the last checkpoint is intact")
        self.pending = True
