"""Changing many documents: read, refuse or leave out, write, tell."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from incdsi.cli.application import stopping
from incdsi.cli.opening import known
from incdsi.cli.output import (
    conflicts_table,
    count,
    emit,
    note,
    sentences,
    show,
    status_legend,
    tuning_sentence,
)
from incdsi.cli.progress import progress
from incdsi.cli.reading import Batch
from incdsi.documents import Addition
from incdsi.errors import IncDSIError, InvalidInput
from incdsi.progress import Progress

if TYPE_CHECKING:
    from incdsi.info import Tuning
    from incdsi.search_index import SearchIndex


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """A change of many documents: why it refuses an id, if it does, and how it is done."""

    doing: str
    done: str
    objection: Callable[[str, bool], str | None]
    apply: Callable[[SearchIndex, Batch, Progress], list[Addition]]


@dataclass(slots=True, kw_only=True)
class Change:
    """Carries a verb over all batches and remembers what happened."""

    verb: Verb
    skip_bad: bool
    hidden: bool
    additions: list[Addition] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    seconds: float = 0.0
    tuning: Tuning | None = None

    def run(self, batches: Iterator[Batch], opening: Callable[[], SearchIndex]) -> None:
        """Write batch by batch; the index is opened, or made, once there is a good document."""
        opened: SearchIndex | None = None
        with stopping(self._stopped), ExitStack() as stack:
            for batch in batches:
                self._refuse(batch.problems)
                if batch.documents:
                    opened = opened if opened is not None else stack.enter_context(opening())
                    self._write(opened, self._accepted(opened, batch))
        if opened is None:
            raise InvalidInput(sentences(["no good documents found", *self.skipped], "lines"))

    def show(self, *, as_json: bool, quiet: bool, others: Sequence[str] = ()) -> None:
        """The result for people or as JSON; what was left out on stderr, `others` among it."""
        if self.skipped and not as_json:
            note(sentences(self.skipped, "lines"), quiet=quiet)
        for sentence in others:
            note(sentence, quiet=as_json or quiet)
        if as_json:
            emit(self._json())
        else:
            show(self._summary(), *conflicts_table(self.additions), *status_legend(self.additions))
        if self.tuning is not None and not as_json:
            note(tuning_sentence(self.tuning), quiet=quiet)

    def _accepted(self, index: SearchIndex, batch: Batch) -> Batch:
        there = known(index, (document.id for document in batch.documents))
        objections = {one.id: self.verb.objection(one.id, one.id in there) for one in batch.documents}
        self._refuse([sentence for sentence in objections.values() if sentence is not None])
        documents = [document for document in batch.documents if objections[document.id] is None]
        queries = {document.id: batch.queries[document.id] for document in documents}
        return Batch(documents=documents, queries=queries, problems=[])

    def _refuse(self, problems: list[str]) -> None:
        if problems and not self.skip_bad:
            kept = f"the {count(len(self.additions))} before are kept" if self.additions else "nothing was written"
            advice = f"{kept}; fix this, or leave it out with --skip-bad"
            raise InvalidInput(f"{sentences(problems, 'like these')}\n{advice}")
        self.skipped += problems

    def _write(self, index: SearchIndex, batch: Batch) -> None:
        begin, before, total = time.perf_counter(), len(self.additions), len(batch.documents)
        reported, tuned_before = 0, _last_tuning(index)

        with progress(self.verb.doing, hidden=self.hidden) as bar:

            def report(done: int, of: int) -> None:
                nonlocal reported
                reported = max(reported, min(done, total))  # when the index tunes itself, all are in
                bar(done, of)

            bar(0, total)
            try:
                self.additions += self.verb.apply(index, batch, report)
            except KeyboardInterrupt as stop:
                if reported == total:  # as the index tuned itself
                    raise KeyboardInterrupt(self._kept(before + total)) from stop
                done = before + reported
                kept = (
                    f"at least {count(done)} were {self.verb.done} and are kept" if done else "what was written is kept"
                )
                raise KeyboardInterrupt(f"stopped; {kept}; run the same command with --skip-bad for the rest") from stop
            except IncDSIError as error:
                if before + reported:
                    error.args = (f"{error}\n{count(before + reported)} were {self.verb.done} before and are kept",)
                raise
        self.seconds += time.perf_counter() - begin
        if (tuned := _last_tuning(index)) != tuned_before:
            self.tuning = tuned

    def _stopped(self) -> str:
        """What Ctrl-C left between two batches, or as the index was closed."""
        return self._kept(len(self.additions)) if self.additions else "stopped; nothing was written"

    def _kept(self, done: int) -> str:
        kept = f"{count(done)} were {self.verb.done} and are kept"
        return f"stopped; {kept}; run the same command with --skip-bad if there are more"

    def _json(self) -> dict[str, object]:
        return {
            self.verb.done: len(self.additions),
            "skipped": self.skipped,
            "tuned": self.tuning is not None,
            "tuning": self.tuning,
            "seconds": self.seconds,
            "milliseconds": _milliseconds(self.additions),
            "documents": [addition.to_json() for addition in self.additions],
        }

    def _summary(self) -> str:
        each = 1000 * self.seconds / max(1, len(self.additions))
        steps = ", ".join(f"{step} {spent:.1f}" for step, spent in _milliseconds(self.additions).items())
        left = f", left out {len(self.skipped):,}" if self.skipped else ""
        timing = f" in {self.seconds:.2f} s: {each:.1f} ms each ({steps})" if self.additions else ""
        return f"{self.verb.done} {count(len(self.additions))}{left}{timing}"


def _last_tuning(index: SearchIndex) -> Tuning | None:
    """None behind a server, which tunes its index by itself."""
    return getattr(index, "last_tuning", None)


def _already_there(id: str, there: bool) -> str | None:
    return f"document {id!r} is already in the index; update or upsert it instead" if there else None


def _not_there(id: str, there: bool) -> str | None:
    return None if there else f"no document {id!r} in the index; add or upsert it instead"


def _add(index: SearchIndex, batch: Batch, report: Progress) -> list[Addition]:
    return index.add_many(batch.documents, batch.queries, progress=report)


def _update(index: SearchIndex, batch: Batch, report: Progress) -> list[Addition]:
    additions = []
    for done, document in enumerate(batch.documents, start=1):
        additions.append(index.update(document, batch.queries[document.id]))
        report(done, len(batch.documents))
    return additions


def _upsert(index: SearchIndex, batch: Batch, report: Progress) -> list[Addition]:
    return index.upsert_many(batch.documents, batch.queries, progress=report)


def _milliseconds(additions: list[Addition]) -> dict[str, float]:
    """The mean time of each step."""
    steps = dict.fromkeys(step for addition in additions for step in addition.seconds)
    return {
        step: round(1000 * sum(addition.seconds.get(step, 0.0) for addition in additions) / len(additions), 3)
        for step in steps
    }


ADD = Verb(doing="adding", done="added", objection=_already_there, apply=_add)
UPDATE = Verb(doing="updating", done="updated", objection=_not_there, apply=_update)
UPSERT = Verb(doing="upserting", done="upserted", objection=lambda id, there: None, apply=_upsert)
