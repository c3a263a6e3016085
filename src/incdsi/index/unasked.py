"""Documents as if nobody had asked for them: how well an index finds those of which it knows no question.

Held-out queries come from documents that people asked for several times. Where most documents were never asked for,
they alone would flatter whatever leans on known questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from incdsi.engine.protocol import Bench, Doubles, View
from incdsi.engine.settings import Settings
from incdsi.index.quality import MOST_PROBES, Panel, Probe, contributions, evenly
from incdsi.index.replacement import sweep
from incdsi.records import Record

Records = Callable[[], Iterable[Record]]  # anew each time
ONE_IN = 3  # documents that people asked for are taken as if nobody had; the others stay, as rivals
FEWEST = 6  # documents that people asked for: of two or more at a time, however much was asked for each
ENOUGH = 30  # questions to tell by
MANY = 200  # until so many tell, others are taken after them, in turn, and more is asked for each


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inquiry:
    """Probes of documents that people asked for, of others, and the share of the first among all documents."""

    known: Panel
    unknown: Panel
    share: float

    @property
    def evenly(self) -> list[Panel]:
        """As if a question came for every document; by the known alone where too few of the others are still there."""
        if self.share >= 1.0 or len({probe.row for probe in self.unknown.asked}) < ENOUGH:
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
        known, unknown = self.known.telling, self.unknown.telling
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
    known, others = dict[int, int](), 0  # how much was asked for each, by row
    for record in records():
        if any(query.used and not query.generated for query in record.queries):
            known[record.row] = sum(not query.generated for query in record.queries)
        else:
            others += 1
    each = -(-MANY // max(len(known), 1))
    told = {row: min(count, each) for row, count in known.items()}
    held = Panel(view, held_out)
    if len(known) < FEWEST or min(sum(told.values()), others) < ENOUGH:
        return Inquiry(known=held, unknown=Panel(view, ()), share=1.0)
    taken = takings(told, min(len(known) // ONE_IN, MOST_PROBES, others))
    unknown = _unasked(view, records, taken, settings)
    return Inquiry(known=held, unknown=unknown, share=len(known) / (len(known) + others))


def takings(told: Mapping[int, int], size: int) -> list[dict[int, int]]:
    """The rows to take together, so many and evenly chosen, and how many questions tell of each.

    One set, and others after it until MANY tell.
    """
    taken, left = list[dict[int, int]](), list(told)
    while not taken or (len(taken) < ONE_IN and sum(sum(rows.values()) for rows in taken) < MANY):
        taken.append({row: told[row] for row in evenly(left, size)})
        left = [row for row in left if row not in taken[-1]]
    return taken


def _unasked(view: View, records: Records, taken: Sequence[Mapping[int, int]], settings: Settings) -> Panel:
    """The documents in these rows placed by their texts alone, each set in turn, and so many questions for each.

    The first set stays so; of the others it is told what their probes see before they go back.
    """
    bench, told = view.bench(), list[Doubles]()
    for rows in reversed(taken[1:]):
        asked, before = _taken(bench, records, rows, settings)
        told += contributions(bench, asked)
        bench.put(before)
    return Panel(bench, _taken(bench, records, taken[0], settings)[0], told=told)


def _taken(
    bench: Bench, records: Records, rows: Mapping[int, int], settings: Settings
) -> tuple[list[Probe], list[Record]]:
    """So many probes for each document in these rows, placed anew without questions; and what was there before.

    Those that made way for what was asked are placed anew before them: where they are would give it away.
    """
    asked, known, shaped = list[Probe](), list[Record](), list[Record]()
    for record in records():
        if record.row in rows:
            natural = [query for query in record.queries if not query.generated]
            asked += [Probe.of(record, query) for query in evenly(natural, rows[record.row])]
            known.append(record)
        elif not rows.keys().isdisjoint(record.constrained_by):
            shaped.append(record)
    bare = [replace(one, queries=tuple(query for query in one.queries if query.generated)) for one in known]
    bench.remove(sorted(rows))
    sweep(bench, [*shaped, *bare], settings, {})
    return asked, [*shaped, *known]
