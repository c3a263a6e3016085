"""Every kind of life, in several orders, judged at marks: beside retraining, dense search and the plain hybrid."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.records import Record
from incdsi.search import fused, rank_within
from incdsi.training.frozen import train_frozen
from incdsi.training.pairs import EmbeddedPairs
from incdsi.training.settings import FrozenSettings
from incdsi.training.starts import start_rows
from incdsi_lab.anchors import Anchor, Meaning, PlainHybrid
from incdsi_lab.baselines.protocol import Part, Questions, moved_to
from incdsi_lab.embedded import Embedded, KnownTexts
from incdsi_lab.experiments.judging import DEPTH, encoded
from incdsi_lab.experiments.tasks import Piece, Pieces, Task
from incdsi_lab.living.lives import LIVES, Places, World, at_random, plainly
from incdsi_lab.living.shelf import Shelf, best_rung, used
from incdsi_lab.ranking import ranks_among

MARKS = (100, 250, 500, 1_000, 2_500, 5_000, 9_748)
GROWTH = (1.1, 1.25, 1.5, 2.0)  # times the documents there were when all were placed
LEARNER = 600  # documents whose held-out questions choose the weights
SOLVING, ASKING = 0.008, 0.006  # seconds a document and a question, roughly
GROWN = "growth"
PARTS = (*LIVES, GROWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many documents live, and in how many orders; each order draws its own."""

    documents: int = 1_000
    orders: int = 5
    seed: int = 0

    @property
    def marks(self) -> tuple[int, ...]:
        return (*(mark for mark in MARKS if mark < self.documents), self.documents)


class Living:
    """The pieces of one such study, in a folder."""

    def __init__(self, data: Embedded, size: Size, folder: Path, only: Sequence[str] = PARTS) -> None:
        if unknown := sorted({*only} - {*PARTS}):
            raise InvalidInput(f"there is no life {unknown[0]!r}; choose from {', '.join(PARTS)}")
        self.world, self.size = World.of(data), size
        self.lives, self.grown = tuple(name for name in LIVES if name in only), GROWN in only
        self.pieces = Pieces(
            folder,
            {
                "living": data.collection.name,
                "collection": data.collection.digest,
                "encoder": data.encoder.fingerprint,
                "documents": size.documents,
                "seed": size.seed,
            },
        )
        self._encoder = KnownTexts(data)

    def tasks(self) -> list[Task]:
        """The weights, then order by order each life and what growth costs."""
        chosen = [self._weights_task()]
        for order in range(self.size.orders):
            chosen += [self._life_task(name, order) for name in self.lives]
            chosen += [self._growth_task(order)] if self.grown else []
        return chosen

    def shelf(self, settings: Settings) -> Shelf:
        return Shelf(self._encoder, self.world.written_for, settings)

    def settings(self) -> Settings:
        """By the weights that were chosen."""
        return Settings.from_json(self.pieces["weights"]["settings"])

    def _fresh(self) -> Settings:
        return Settings(fingerprint=self._encoder.fingerprint, dimension=self._encoder.dimension, model=None)

    def _draw(self, order: int) -> np.random.Generator:
        return np.random.default_rng([self.size.seed, self.size.documents, order])

    def _weights_task(self) -> Task:
        """The rung of the product's ladder for all lives, chosen by what one small shelf holds out."""

        def run(_: Progress) -> Piece:
            shelf, draw = self.shelf(self._fresh()), np.random.default_rng([self.size.seed, 1])
            places = at_random(self.world, draw, min(LEARNER, self.size.documents))
            plainly(shelf, self.world, places, draw)
            settings = replace(self._fresh(), hyperparameters=best_rung(shelf))
            return {"settings": settings.to_json(), "queries": shelf.count_held_out()}

        return Task(name="weights", run=run, seconds=7 * SOLVING * LEARNER)

    def _life_task(self, name: str, order: int) -> Task:
        _, ordered, life = LIVES[name]

        def run(progress: Progress) -> Piece:
            draw = self._draw(order)
            places = ordered(self.world, draw, self.size.documents)
            shelf, at, before = self.shelf(self.settings()), {}, 0
            for mark in self.size.marks:
                life(shelf, self.world, places[before:mark], draw)
                at[str(mark)] = self._judged(shelf, places[:mark])
                before = mark
                progress(mark, self.size.documents)
            return {"at": at}

        seconds = SOLVING * (self.size.documents + sum(self.size.marks)) + 2 * ASKING * sum(self.size.marks)
        return Task(name=f"{name}/{order}", run=run, seconds=seconds)

    def _growth_task(self, order: int) -> Task:
        """What placing everything again brings after so much growth since it was done last."""

        def run(progress: Progress) -> Piece:
            draw = self._draw(order)
            places = at_random(self.world, draw, self.size.documents)
            first = int(self.size.documents / GROWTH[-1])
            shelf = self.shelf(self.settings())
            plainly(shelf, self.world, places[:first], draw)
            shelf, at, before = shelf.placed_again(), {}, first
            for times in GROWTH:
                count = min(len(places), round(times * first))
                plainly(shelf, self.world, places[before:count], draw)
                questions = self._asked(places[:count])
                at[f"{times:g}"] = {
                    "documents": count,
                    "learned": _learned(shelf, questions),
                    "again": _learned(shelf.placed_again(), questions),
                }
                before = count
                progress(count, len(places))
            return {"at": at}

        return Task(name=f"{GROWN}/{order}", run=run, seconds=SOLVING * 4 * self.size.documents)

    def _asked(self, places: Places) -> Questions:
        return self.world.data.test.among(moved_to(places, len(self.world.data.documents)))

    def _judged(self, shelf: Shelf, places: Places) -> dict[str, Any]:
        """Ranks of the test questions by every way of searching, encoded."""
        questions = self._asked(places)
        rows = self._rows(shelf, places)
        begin = time.process_time()
        again = shelf.placed_again()
        spent = time.process_time() - begin
        for one in (shelf, again):
            one.choose_fusion()
        found: dict[str, Any] = by_the_product(shelf, again, questions, rows[questions.owners])
        found |= {anchor.name: self._anchored(anchor, places, questions) for anchor in (Meaning(), PlainHybrid())}
        found["retraining"] = self._retrained([shelf.records[self.world.document(p).id] for p in places], questions)
        return {"ranks": found, "again_cpu_seconds": spent, "fusion": asdict(shelf.settings.fusion)}

    def _rows(self, shelf: Shelf, places: Places) -> NDArray[np.int64]:
        return np.array([shelf.records[self.world.document(place).id].row for place in places], dtype=np.int64)

    def _anchored(self, anchor: Anchor, places: Places, questions: Questions) -> str:
        data, moved = self.world.data, moved_to(places, len(self.world.data.documents))
        nothing = data.train.take(np.empty(0, dtype=np.intp)).among(moved)
        documents = tuple(self.world.document(place) for place in places)
        anchor.fit(Part(documents=documents, embeddings=data.embeddings[places], queries=nothing, held_out=nothing))
        return encoded(anchor.ranks(questions))

    def _retrained(self, records: Sequence[Record], questions: Questions) -> str:
        """By vectors trained together on all that the index knows, right or wrong."""
        settings = FrozenSettings(seed=self.size.seed)
        queries, owners, apart, whose = used(records)
        anchors = np.stack([record.anchor for record in records])
        start = start_rows(settings, anchors, np.stack([query.embedding for query in queries]), owners)
        vectors, _ = train_frozen(start, _pairs(queries, owners), _pairs(apart, whose, anchors.shape[1]), settings)
        return encoded(ranks_among(vectors, questions.embeddings, questions.owners))


def by_the_product(shelf: Shelf, again: Shelf, questions: Questions, rows: NDArray[np.int64]) -> dict[str, str]:
    """Ranks by learned vectors and by fused search, on a shelf and on the same placed again; `rows` are to be found.

    Placing changes neither texts nor words: both shelves share those scores.
    """
    views = {"": shelf.live.view(), " again": again.live.view()}
    learned = [view.learned_many(questions.embeddings) for view in views.values()]
    nearest = views[""].nearest_many(questions.embeddings)
    found: dict[str, list[int]] = {f"{mode}{name}": [] for name in views for mode in ("learned", "fused")}
    for text, row, near, *vectors in zip(questions.texts, rows.tolist(), nearest, *learned, strict=True):
        words = views[""].lexical(text)
        for (name, view), by_vectors in zip(views.items(), vectors, strict=True):
            found[f"learned{name}"].append(rank_within(by_vectors, row, DEPTH))
            found[f"fused{name}"].append(rank_within(fused(by_vectors, near, words, view.settings.fusion), row, DEPTH))
    return {name: encoded(np.array(ranks)) for name, ranks in found.items()}


def _learned(shelf: Shelf, questions: Questions) -> str:
    """By the learned vectors of a shelf whose documents came once, in the order of the questions' owners."""
    rows, vectors = shelf.live.all_vectors()
    order = {row: number for number, row in enumerate(rows.tolist())}
    by_id = [order[record.row] for record in shelf.records.values()]
    owners = np.array(by_id, dtype=np.intp)[questions.owners]
    return encoded(ranks_among(vectors, questions.embeddings, owners))


def _pairs(queries: Sequence[Any], owners: NDArray[np.int64], dimension: int = 0) -> EmbeddedPairs:
    rows = [query.embedding for query in queries]
    embeddings = np.stack(rows) if rows else np.empty((0, dimension), dtype=np.float32)
    return EmbeddedPairs(texts=tuple(query.text for query in queries), owners=owners, embeddings=embeddings)


def figures(pieces: Pieces, size: Size, life: str, mark: int) -> Mapping[str, list[str]]:
    """Encoded ranks by way of searching, one for each order."""
    found: dict[str, list[str]] = {}
    for order in range(size.orders):
        for name, ranks in pieces[f"{life}/{order}"]["at"][str(mark)]["ranks"].items():
            found.setdefault(name, []).append(ranks)
    return found
