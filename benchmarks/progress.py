"""One line that says how far a long run is and how long it still takes."""

from __future__ import annotations

import sys
import time


class Countdown:
    """`show(done)` rewrites the line on a terminal, and prints one every `seconds` elsewhere."""

    def __init__(self, total: float, unit: str, seconds: float = 15.0) -> None:
        self._total, self._unit, self._seconds = total, unit, seconds
        self._begun = time.monotonic()
        self._shown = 0.0

    def show(self, done: float, note: str = "") -> None:
        now, terminal = time.monotonic(), sys.stderr.isatty()
        if now - self._shown < (0.5 if terminal else self._seconds) and done < self._total:
            return
        self._shown = now
        left = (now - self._begun) / max(done, 1e-9) * max(0.0, self._total - done)
        text = f"{done:,.0f} of {self._total:,.0f} {self._unit}, {_clock(left)} left{note and ', '}{note}"
        print(f"\r{text:<110}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty():
            print(file=sys.stderr)


def _clock(seconds: float) -> str:
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"
