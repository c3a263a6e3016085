"""What an index asks of the place its documents live in, in rows: the number a document keeps for life.

A search sees one `View`; its scores come as `Scored`, best first and on demand, so that nobody ever needs the score of
every document. Changes are made inside `Engine.changing`, in a `Batch` that is kept whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.engine.settings import Settings
from incdsi.filters import Filter
from incdsi.preserve import PreserveRows
from incdsi.progress import Progress, Stopwatch
from incdsi.records import JSON, Answer, Passaged, Record, TextVectors
from incdsi.rows.scores import Share, Spread
from incdsi.text.encoders import Encoder

Rows = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The best documents, best first, ties by row; no other scores more than `beyond` (-inf: there is no other)."""

    rows: Rows
    scores: Doubles
    beyond: float


class Likely(NamedTuple):
    """Documents that are likely the best; no other scores more than `beyond` (-inf: there is no other)."""

    rows: Rows
    beyond: float


class Scored(Protocol):
    """Every document's score by one query, told for the best and for those asked about.

    A filter narrows `top` alone: `unit` is by all documents, so that it does not change what a score means.
    """

    @property
    def unit(self) -> Spread | Share:
        """What its scores are measured in where they are added to others."""
        ...

    def top(self, k: int) -> Best:
        """At most k documents; fewer only when no other that passes the filter could be told from the rest."""
        ...

    def likely(self, k: int) -> Likely:
        """At least k documents; fewer only as in `top`, which takes longer."""
        ...

    def at_most(self, rows: Rows) -> Doubles:
        """As `score`, with scores that are at least theirs: quicker."""
        ...

    def score(self, rows: Rows) -> Doubles:
        """The scores of these documents, (m,)."""
        ...

    def within(self, row: int) -> Doubles:
        """All scores of which that document's is the best; those of passages first, in their order."""
        ...


class Spreading(Scored, Protocol):
    """Scores measured in standard deviations from their mean."""

    @property
    def unit(self) -> Spread:
        """How many documents there are, and mean and spread of their scores."""
        ...


class Near(Spreading, Protocol):
    """Scores of each document's nearest text."""

    def score_of(self, texts: TextVectors) -> float:
        """The score of a document with these texts, were it there."""
        ...


class Worded(Scored, Protocol):
    """Scores by words; `top` lists only documents that share a word with the text, as all others score 0."""

    def score_of(self, words: Sequence[str]) -> float:
        """The score of a document with these texts, were it there."""
        ...


class View(Protocol):
    """The documents of one moment."""

    @property
    def settings(self) -> Settings:
        """What the index remembered about itself then."""
        ...

    def __len__(self) -> int: ...

    def __contains__(self, row: object) -> bool: ...

    def learned(self, query: Floats, where: Filter | None = None) -> Spreading:
        """Inner products of the document vectors with a query (h,)."""
        ...

    def nearest(self, query: Floats, where: Filter | None = None) -> Near:
        """Inner products with a query (h,) of each document's texts and of what was asked (`Record.texts`), the best.

        Mean and spread are those of texts. What was asked is measured by its own, and counts as a text that stands out
        as much.
        """
        ...

    def learned_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Spreading]:
        """`learned` of each query (b, h), one after another: what they share is done once."""
        ...

    def nearest_many(self, queries: Floats, where: Filter | None = None) -> Iterator[Near]:
        """`nearest` of each query (b, h), one after another: what they share is done once."""
        ...

    def within(self, query: Floats, row: int) -> Doubles:
        """Inner products with a query (h,) of that document's texts; those of passages first, in their order."""
        ...

    def lexical(self, text: str, where: Filter | None = None) -> Worded:
        """BM25 over texts and what people asked."""
        ...

    def marker(self, query: str) -> Callable[[str], Sequence[tuple[int, int]]]:
        """What finds, in a text, begin and end of the words that tell it was asked for: not those in most texts."""
        ...

    def rivals(self, queries: Floats, without: int | None = None) -> tuple[Doubles, Rows]:
        """For each query (b, h) the best score and whose it is; -inf and -1 where there is no document.

        `without` leaves out the document that asks.
        """
        ...

    def preserve(self, margin: float, without: int | None = None) -> PreserveRows:
        """The preserve rows under ceilings at their own scores less the margin."""
        ...

    def elsewhere(self, query: str, row: int) -> bool:
        """Whether another document than that in the row has this query."""
        ...

    def others(self, query: str, row: int) -> list[int]:
        """The rows of the other documents that have this query, generated, asked or taught."""
        ...

    def asked_for(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of these documents are placed by something that people asked or taught, (m,)."""
        ...

    def bench(self) -> Bench:
        """The same documents, to be changed without anybody seeing it."""
        ...


class Bench(View, Protocol):
    """Documents in the making: a view that can be changed."""

    def put(self, records: Sequence[Record]) -> None:
        """Show these documents, new ones or new states of old ones."""
        ...

    def remove(self, rows: Sequence[int]) -> None:
        """Hide these documents."""
        ...

    def lift(self, rows: Sequence[int]) -> None:
        """Hide these documents until they are `put` back, with the same texts and at other vectors."""
        ...


class Batch(Protocol):
    """Changes that become durable and then visible together."""

    @property
    def version(self) -> int:
        """The version that these changes make."""
        ...

    def insert(self, record: Record) -> None:
        """Store a new document in its row, one that `Engine.next_row` gave out; DuplicateDocument."""
        ...

    def replace(self, record: Record) -> None:
        """Store a document anew; UnknownDocument when it is not there."""
        ...

    def delete(self, id: str) -> int:
        """Remove a document; the row it had."""
        ...

    def save(self, settings: Settings) -> None:
        """Settings that place no document otherwise."""
        ...

    def set_setting(self, key: str, value: JSON) -> None: ...

    def keep_answer(self, key: str, answer: Answer) -> None:
        """Remember what is said about these changes, to be said again."""
        ...


class Engine(Protocol):
    """One index's documents, wherever they are. Any number of threads read; one at a time changes."""

    @property
    def version(self) -> int:
        """Counts every change."""
        ...

    def view(self) -> View:
        """Everything that was committed by now, by whomever."""
        ...

    # Reading

    def __contains__(self, id: object) -> bool: ...

    def get(self, id: str) -> Record: ...

    def row_of(self, id: str) -> int: ...

    def ids(self, rows: Iterable[int]) -> list[str]: ...

    def documents(self, rows: Iterable[int], most_bytes: int | None = None) -> list[Document]: ...

    def passaged(self, rows: Sequence[int], most_bytes: int | None = None) -> list[Passaged]:
        """As `documents`, each with its passages, of the same moment."""
        ...

    def records(self) -> Iterator[Record]:
        """Everything, one after another, in the order of rows."""
        ...

    def matching(self, where: Filter) -> Rows:
        """The rows of the documents that pass a filter."""
        ...

    @property
    def vector_search(self) -> str:
        """How searches look for document vectors: "exact", or the approximate index whose list may miss some."""
        ...

    def constrained_by(self, row: int) -> Sequence[int]:
        """The rows of the documents that were solved under an active constraint of this one."""
        ...

    def unresolved(self) -> Sequence[int]:
        """The rows of the documents that were solved under a constraint of one that is gone."""
        ...

    def held_out(self) -> int:
        """How many queries are held out."""
        ...

    def asked(self) -> int:
        """How many documents people asked for."""
        ...

    def setting(self, key: str) -> JSON: ...

    def vectors(self) -> tuple[list[str], Floats]:
        """All ids and their document vectors, (n, h), as of now."""
        ...

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]: ...

    def answer(self, key: str) -> Answer | None:
        """What a batch was told to keep under that key."""
        ...

    def encoder(self, settings: Settings, given: Encoder | str | Path | None = None) -> Encoder:
        """The encoder those settings mean: the caller's if it is that one, else the one that was kept."""
        ...

    def verify(self) -> list[str]:
        """Read every byte; what is wrong with it, one sentence each, or nothing."""
        ...

    def backup(self, target: Path | str, progress: Progress | None) -> None:
        """Copy the documents of one moment to a new folder, while reading and writing go on."""
        ...

    def close(self) -> None: ...

    # Changing

    def compact(self) -> None:
        """Leave no byte of what was deleted."""
        ...

    @property
    def mutex(self) -> AbstractContextManager[object]:
        """Held by the thread that changes the index, which may take it again."""
        ...

    def changing(self, if_version: int | None) -> AbstractContextManager[None]:
        """Be the one that writes, up to date; VersionConflict when the index is not the one the caller saw."""
        ...

    @property
    def next_row(self) -> int:
        """The row of the next document to be inserted; those after it follow."""
        ...

    def write(self, watch: Stopwatch | None = None) -> AbstractContextManager[Batch]:
        """One change: durable, then visible, when the block ends; undone whole when it raises."""
        ...

    def recover(self) -> None:
        """After whatever stopped a change: show what was committed."""
        ...

    def amend_answer(self, key: str, answer: Answer) -> None:
        """Say it better, now that everything is done."""
        ...

    def keep_encoder(self, encoder: Encoder) -> str | None:
        """Keep an encoder beside the one in use; what settings call it."""
        ...

    def drop_old_encoders(self) -> None:
        """Let go of those that nobody needs any more, if that is sure."""
        ...

    def bench(self, settings: Settings) -> Bench:
        """No documents yet, under other settings."""
        ...

    def whole(self) -> Bench:
        """All documents as they are, in memory: to be placed anew, many times."""
        ...

    def swap(self, bench: Bench, records: Iterable[Record], settings: Settings, beside: Mapping[str, JSON]) -> None:
        """Store all these records, settings and what is beside them at once; the bench is what is seen from then on."""
        ...
