"""Progress with the time left, on stderr, driven by the library's callbacks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from incdsi.progress import Progress, announcing

LINE_EVERY = 60.0  # seconds; what takes less leaves a log as it was


@contextmanager
def progress(what: str, *, hidden: bool = False) -> Iterator[Progress]:
    """A bar for as long as the block lasts; where stderr is no terminal, a line a minute.

    A new total starts again: the work has reached its next part.
    """
    if hidden:
        yield lambda done, total: None
    elif sys.stderr.isatty():
        with _bar(what) as report:
            yield report
    else:
        yield _lines(what)


@contextmanager
def waiting(what: str, *, hidden: bool = False) -> Iterator[None]:
    """Says what the block waits for: on a terminal beside a spinner, elsewhere only what the library announces."""
    if hidden:
        yield
    elif sys.stderr.isatty():
        from rich.console import Console

        with (
            Console(stderr=True).status(f"{what} ...") as status,
            announcing(lambda said: status.update(f"{said} ...")),
        ):
            yield
    else:
        with announcing(lambda said: print(said, file=sys.stderr, flush=True)):
            yield


@contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        known: list[int] = []

        def report(done: int, total: int) -> None:
            if known != [total]:
                bar.reset(task, total=total)
                known[:] = [total]
            bar.update(task, completed=done, description=what)

        with announcing(lambda said: bar.update(task, description=f"{what} ({said})")):
            yield report


def _lines(what: str) -> Progress:
    begin = said = time.monotonic()
    known = 0

    def report(done: int, total: int) -> None:
        nonlocal begin, said, known
        now = time.monotonic()
        if total != known:
            begin, known = now, total
        if done and now - said >= LINE_EVERY:
            said = now
            left = (now - begin) * (total - done) / done / 60
            print(f"{what}: {done:,} of {total:,}, about {left:.0f} min left", file=sys.stderr, flush=True)

    return report
