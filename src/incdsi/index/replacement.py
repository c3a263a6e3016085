"""Everything placed anew under other settings, then put in place at once: tuning, and another encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from incdsi.index.draft import Draft
from incdsi.index.live import Live
from incdsi.index.placement import BATCH, place_in_order, portions
from incdsi.index.settings import KEY, Settings
from incdsi.index.snapshot import Snapshot, preserve_by
from incdsi.progress import Progress
from incdsi.store import Record, Store
from incdsi.store.records import JSON
from incdsi.text.encoders import Encoder

SWEEPS = 2  # from nothing: documents placed early have not seen those that came after; a second look brought 0.6 H@1


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Replacement:
    """Other settings and, unless they place documents as before, all `records` placed by them; not stored yet.

    `beside` is stored with them, by key.
    """

    settings: Settings
    live: Live
    records: Sequence[Record] = ()
    beside: Mapping[str, JSON] = field(default_factory=dict)

    def put_in_place(self, store: Store, encoder: Encoder) -> Snapshot:
        """Store it in one transaction; what is to be served from then on."""
        with store.transaction() as tx:
            for record in self.records:
                tx.replace(record.document.id, record)
            tx.set_setting(KEY, self.settings.to_json())
            for key, value in self.beside.items():
                tx.set_setting(key, value)
        self.live.sequence = store.version
        return Snapshot(settings=self.settings, encoder=encoder, live=self.live)


def sweep(
    live: Live, records: Sequence[Record], settings: Settings, progress: Callable[[int], None] | None = None
) -> list[Record]:
    """Place the records, one after another, in the order of their rows; what is live then shows them so.

    Each sees all others that are live: in an empty one those before it, in one that shows them already those after
    it too.
    """
    placed: list[Record] = []
    for drafts in portions([Draft.of(record) for record in records], settings, lambda draft: draft.taught, BATCH):
        rows = [draft.row for draft in drafts]
        if len(drafts) > 1:
            live.remove([row for row in rows if row in live])
        results = place_in_order(live, drafts, settings)
        batch = [result.knowing(rows) for result in results]
        live.put(batch)
        placed += batch
        if progress is not None:
            progress(len(batch))
    return placed


def replaced(
    records: Sequence[Record], settings: Settings, progress: Progress | None, begun: Live | None = None
) -> Replacement:
    """All records, in the order of their rows, placed under these settings, each seeing all others in the end.

    `begun` shows them placed by such settings already, and is changed: then one sweep does, not two from nothing.
    """
    live = begun if begun is not None else Live(settings.dimension, preserve_by(settings))
    sweeps, done = 1 if len(live) else SWEEPS, 0

    def report(count: int) -> None:
        nonlocal done
        done += count
        if progress is not None:
            progress(done, sweeps * len(records))

    for _ in range(sweeps):
        placed = sweep(live, records, settings, report)
    placed = taught_last(live, placed, settings)
    return Replacement(settings=settings, live=live.compacted(), records=placed)


def taught_last(live: Live, records: Sequence[Record], settings: Settings) -> list[Record]:
    """The records, those that were taught something placed once more, at the end: they see where all others ended."""
    taught = [record for record in records if Draft.of(record).taught]
    others = [record for record in records if not Draft.of(record).taught]
    for _ in range(SWEEPS):
        taught = sweep(live, taught, settings)
    return [*others, *taught]
