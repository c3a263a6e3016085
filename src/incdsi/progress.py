"""How long work takes: told while it runs, and measured by step."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Progress = Callable[[int, int], None]  # told what is done, and of how much; a new total begins another part


@contextmanager
def announcing(show: Callable[[str], None]) -> Iterator[None]:
    """Shows, while the block lasts, what the library waits for: what it logs as information."""

    class Announcement(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            show(record.getMessage())

    logger, handler = logging.getLogger("incdsi"), Announcement(logging.INFO)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


@dataclass(slots=True)
class Stopwatch:
    """Seconds by step."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Count the block's time towards this step, unless it raises."""
        begin = time.perf_counter()
        yield
        self.count(name, time.perf_counter() - begin)

    def count(self, name: str, seconds: float) -> None:
        """Count seconds that were spent elsewhere towards this step."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
