"""What the log says is there, and the shelf of it: read whole once, then followed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.layout import Names, Place
from incdsi.engine.milvus.log import KEPT_FOR, Commit, Log
from incdsi.engine.milvus.reading import records_at
from incdsi.engine.milvus.server import Server, kind_at, old_vectors
from incdsi.engine.milvus.shelf import Shelf, Shown
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import IndexNotFound, UnknownDocument
from incdsi.records import JSON

PORTION = 256  # documents read at a time
Places = Mapping[int, Place | None]  # by row; None for one that is gone


@dataclass(slots=True)
class Table:
    """The log summed up, but for where each document is: that the shelf knows.

    `refuse` was replaced by the commits named and is not deleted yet; `answers` have a key in the log and their age.
    """

    last: int = 0
    version: int = 0
    next_row: int = 1
    generation: int = 1
    since: int = 1
    purged: int = 0
    settings: dict[str, JSON] = field(default_factory=dict)
    answers: dict[str, tuple[int, float]] = field(default_factory=dict)
    refuse: list[tuple[int, float, Place]] = field(default_factory=list)

    @property
    def index_settings(self) -> Settings:
        return Settings.from_json(self.settings[KEY])

    def take(self, commits: Sequence[Commit], place_of: Callable[[int], Place | None]) -> dict[int, Place | None]:
        """Sum these up as well; where documents are that were not there before."""
        new: dict[int, Place | None] = {}
        for commit in commits:
            for row, place in (*((row, None) for row in commit.gone), *((put.row, put) for put in commit.puts)):
                old = new[row] if row in new else place_of(row)
                if old is not None:
                    self.refuse.append((commit.key, time.monotonic(), old))
                new[row] = place
            self.settings |= commit.settings
            self.answers |= {name: (key, commit.at) for name, key in commit.answers.items()}
            self.last, self.version, self.next_row = commit.key, commit.version, commit.next_row
            self.generation, self.since = commit.generation, max(self.since, commit.since)
            self.purged = max(self.purged, commit.purged)
        self.refuse = [one for one in self.refuse if one[0] > self.purged]
        oldest = time.time() - KEPT_FOR
        self.answers = {name: kept for name, kept in self.answers.items() if kept[1] > oldest}
        return new


def required(log: Log, where: object) -> list[Commit]:
    """The whole log; IndexNotFound when it is empty."""
    commits = log.after(0, STRONG)
    if not commits:
        raise IndexNotFound(f"no index at {where}, only the beginnings of one; create it or check the name")
    return commits


def replayed(commits: Sequence[Commit]) -> tuple[Table, list[Place]]:
    """The sum of a whole log, and where its documents are, by key."""
    start = max((number for number, commit in enumerate(commits) if commit.whole), default=0)
    table = Table()
    places = table.take(commits[start:], lambda _: None)
    return table, sorted((place for place in places.values() if place is not None), key=lambda place: place.key)


def server_of(connection: Connection, table: Table, before: Server | None = None) -> Server:
    """The collections that a table speaks of; those of `before`, where they are the same."""
    names = Names(connection.address.name, table.generation)
    kind = before.kind if before is not None and before.names == names else kind_at(connection, names)
    return Server(connection, names, kind, table.since)


def loaded(settings: Settings, places: Sequence[Place], server: Server) -> Shelf:
    """Everything, from the server; UnknownDocument when something of it is gone by now: the log has news."""
    shelf = Shelf(settings)
    for start in range(0, len(places), PORTION):
        shelf.put(_shown(server, places[start : start + PORTION]), {})
    shelf.settle()
    return shelf


def follow(shelf: Shelf, new: Places, server: Server) -> None:
    """Bring a shelf up to date; UnknownDocument when that needs what is deleted by now."""
    gone = [row for row, place in new.items() if place is None and row in shelf]
    puts = sorted((place for place in new.values() if place is not None), key=lambda place: place.key)
    replaced = [place.row for place in puts if place.row in shelf]
    old = old_vectors(server, shelf, [*gone, *replaced])
    if len(old) < len(gone) + len(replaced):
        raise UnknownDocument("a version that was replaced is deleted by now")
    shown = [one for start in range(0, len(puts), PORTION) for one in _shown(server, puts[start : start + PORTION])]
    shelf.remove(gone, old)
    shelf.put(shown, old)


def _shown(server: Server, places: Sequence[Place]) -> list[Shown]:
    return [Shown(place, record) for place, record in zip(places, records_at(server, places), strict=True)]
