"""Documents as if nobody had asked for them: how well an index finds those of which it knows no question.

Held-out queries come from documents that people asked for several times. Where most documents were never asked for,
they alone would flatter whatever leans on known questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from incdsi.engine.protocol import View
from incdsi.engine.settings import Settings
from incdsi.index.quality import MOST_PROBES, Panel, Probe, evenly
from incdsi.index.replacement import sweep
from incdsi.records import Record

Records = Callable[[], Iterable[Record]]  # anew each time
ONE_IN = 3  # documents that people asked for are taken as if nobody had; the others stay, as rivals
ENOUGH = 30  # of them to tell by


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inquiry:
    """Probes of documents that people asked for, of others, and the share of the first among all documents."""

    known: Panel
    unknown: Panel
    share: float

    @property
    def evenly(self) -> list[Panel]:
        """As if a question came for every document."""
        if self.share >= 1.0:
            return [self.known]
        most = min(len(self.known.asked) / self.share, len(self.unknown.asked) / (1.0 - self.share))
        counts = round(most * self.share), round(most * (1.0 - self.share))
        both = zip((self.known, self.unknown), counts, strict=True)
        return [panel._replace(asked=evenly(panel.asked, count)) for panel, count in both]

    @property
    def again(self) -> list[Panel]:
        """As if at least half of the questions came for documents that people asked for before; every probe counts.

        Together they count as so many of which just that share is of the one kind, and which tell as much. Where too
        few of the known could tell, each counts once, and each of the others for the share of its kind.
        """
        share = max(self.share, 0.5)
        if share >= 1.0:
            return [self.known]
        known, unknown = len(self.known.asked), len(self.unknown.asked)
        if known < ENOUGH:
            return [self.known, self.unknown._replace(weight=1.0 - share)]
        worth = 1.0 / (share**2 / known + (1.0 - share) ** 2 / unknown)
        return [
            self.known._replace(weight=share * worth / known),
            self.unknown._replace(weight=(1.0 - share) * worth / unknown),
        ]


def inquiry(view: View, records: Records, held_out: Sequence[Probe], settings: Settings) -> Inquiry:
    """By what is held out, and by what people asked for some documents that are placed without it.

    By what is held out alone where the others are too few to matter, or to tell.
    """
    known, others = list[int](), 0
    for record in records():
        if any(query.used and not query.generated for query in record.queries):
            known.append(record.row)
        else:
            others += 1
    held = Panel(view, held_out)
    count = min(len(known) // ONE_IN, MOST_PROBES, others)
    if count < ENOUGH:
        return Inquiry(known=held, unknown=Panel(view, ()), share=1.0)
    unknown = _unasked(view, records, set(evenly(known, count)), settings)
    return Inquiry(known=held, unknown=unknown, share=len(known) / (len(known) + others))


def _unasked(view: View, records: Records, rows: set[int], settings: Settings) -> Panel:
    """The documents in these rows placed by their texts alone, and a question for each.

    Those that made way for what was asked are placed anew before them: where they are would give it away.
    """
    bench, asked, bare, shaped = view.bench(), list[Probe](), list[Record](), list[Record]()
    for record in records():
        if record.row in rows:
            asked.append(Probe.of(record, next(query for query in record.queries if not query.generated)))
            bare.append(replace(record, queries=tuple(query for query in record.queries if query.generated)))
        elif not rows.isdisjoint(record.constrained_by):
            shaped.append(record)
    bench.remove(sorted(rows))
    sweep(bench, [*shaped, *bare], settings, {})
    return Panel(bench, asked)
