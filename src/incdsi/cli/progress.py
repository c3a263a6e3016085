"""Progress with the time left, on stderr, driven by the library's callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int], None]


@contextmanager
def progress(what: str, *, hidden: bool = False) -> Iterator[Report]:
    """A bar for as long as the block lasts; nothing at all when hidden or when stderr is no terminal.

    A new total starts the bar again: the work has reached its next part.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        known: list[int] = []

        def report(done: int, total: int) -> None:
            if known != [total]:
                bar.reset(task, total=total)
                known[:] = [total]
            bar.update(task, completed=done)

        yield report
