"""Live figures: counts and medians, quality measured while the writer is idle, advice when it drops."""

from __future__ import annotations

import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import structlog

from incdsi.documents import Addition
from incdsi.index import Index
from incdsi.info import Info
from incdsi.server.schemas import Figures, QualityPoint

log = structlog.get_logger("incdsi.server")
RECENT = 1000
MOST_POINTS = 500
QUIET = 1.0  # seconds without a write before quality is measured
MANY = 500  # additions after which it is measured even if the writer is busy
SHARE = 30  # measuring may take 1/SHARE of the time
ENOUGH_QUERIES = 30  # held-out queries needed to give advice
FALL = 3.0  # points of MRR@10 that learned search may lose without advice
BEHIND = 1.0  # points of MRR@10 by which dense search may lead without advice


class Recorder:
    """Counts and timings since the start; called from any thread."""

    def __init__(self) -> None:
        self.started = now()
        self.additions = self.searches = self.taught = self.deleted = self.conflicts = 0
        self.points: deque[QualityPoint] = deque(maxlen=MOST_POINTS)
        self._adds: deque[float] = deque(maxlen=RECENT)
        self._searches: deque[float] = deque(maxlen=RECENT)
        self._mutex = threading.Lock()

    def added(self, additions: Sequence[Addition], seconds: float) -> None:
        with self._mutex:
            self.additions += len(additions)
            self.conflicts += sum(bool(addition.conflicts) for addition in additions)
            self._adds.append(seconds / max(1, len(additions)))

    def searched(self, seconds: float) -> None:
        with self._mutex:
            self.searches += 1
            self._searches.append(seconds)

    def was_taught(self) -> None:
        with self._mutex:
            self.taught += 1

    def was_deleted(self, count: int) -> None:
        with self._mutex:
            self.deleted += count

    def figures(self, documents: int, version: int, waiting: int) -> Figures:
        """Everything so far."""
        with self._mutex:
            adds, searches, points = list(self._adds), list(self._searches), list(self.points)
        return Figures(
            documents=documents,
            version=version,
            started=self.started,
            additions=self.additions,
            searches=self.searches,
            taught=self.taught,
            deleted=self.deleted,
            conflicts=self.conflicts,
            waiting=waiting,
            p50_add_ms=_median_ms(adds),
            p50_search_ms=_median_ms(searches),
            quality=points,
            advice=advice(points),
        )

    def measured(self, info: Info) -> None:
        """Record the index's current quality, if it has held-out queries."""
        if info.quality:
            point = QualityPoint(
                at=now(),
                documents=info.documents,
                additions=self.additions,
                version=info.version,
                quality=dict(info.quality),
            )
            with self._mutex:
                self.points.append(point)


class Observer:
    """Measures quality in its own thread, after a change, once the writer is quiet."""

    def __init__(self, info: Callable[[], Info], index: Index, recorder: Recorder, quiet: Callable[[], float]) -> None:
        self._info, self._index, self._recorder, self._quiet = info, index, recorder, quiet
        self._version = -1
        self._additions = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="incdsi-observer", daemon=True)

    def start(self, least_seconds: float) -> None:
        self._least = least_seconds
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _watch(self) -> None:
        pause = min(QUIET, self._least)
        while not self._stopping.wait(pause):
            pause = min(QUIET, self._least)
            try:
                if self._due():
                    pause = max(self._least, SHARE * self._look())
            except Exception:  # closed, damaged, out of memory: searches report it, and it may pass
                log.warning("quality not measured", exc_info=True)

    def _due(self) -> bool:
        many = self._recorder.additions - self._additions >= MANY
        return (many or self._quiet() >= QUIET) and self._index.version != self._version

    def _look(self) -> float:
        begin = time.perf_counter()
        info = self._info()
        self._version, self._additions = info.version, self._recorder.additions
        self._recorder.measured(info)
        return time.perf_counter() - begin


class InfoKeeper:
    """The index's info, computed once per version; callers wait for each other."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._mutex = threading.Lock()
        self._known: Info | None = None

    def __call__(self) -> Info:
        with self._mutex:
            if self._known is None or self._known.version != self._index.version:
                self._known = self._index.info()
            return self._known


def advice(points: Sequence[QualityPoint]) -> str | None:
    """A sentence if tuning or training would pay off, judged by the held-out queries."""
    if not points or points[-1].quality["learned"].queries < ENOUGH_QUERIES:
        return None
    latest = points[-1].quality
    learned, dense, asked = latest["learned"].mrr_at_10, latest["dense"].mrr_at_10, latest["learned"].queries
    if dense > learned + BEHIND:
        return (
            f"Plain dense search finds {dense:.1f} where learned search finds {learned:.1f} (MRR@10, {asked} held-out "
            "queries): run `incdsi tune`."
        )
    best = max(point.quality["learned"].mrr_at_10 for point in points)
    if best - learned > FALL:
        return (
            f"Learned search fell from {best:.1f} to {learned:.1f} (MRR@10, {asked} held-out queries) as documents "
            "were added: run `incdsi tune`, or `incdsi train` to adapt the encoder."
        )
    return None


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _median_ms(seconds: Sequence[float]) -> float | None:
    return round(1e3 * statistics.median(seconds), 3) if seconds else None
