"""What happens to an index: events in order, for each kind of life, by a random number generator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi_lab.embedded import Embedded
from incdsi_lab.living.shelf import Shelf

Places = NDArray[np.intp]
BLOCK = 50  # documents that arrive between changes of others
SHARE = 0.1  # of a block that changes: deleted and back, updated, taught; and of known questions that are wrong
TAUGHT_WRONG = 0.05  # of the documents, of which one question is taught to another document first


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class World:
    """Documents with the questions that are known of each and their sentences, by place."""

    data: Embedded
    questions: Sequence[Sequence[str]]
    spans: Sequence[Sequence[str]]

    @classmethod
    def of(cls, data: Embedded) -> World:
        questions: list[list[str]] = [[] for _ in data.documents]
        spans: list[list[str]] = [[] for _ in data.documents]
        for found, some in ((questions, data.train), (spans, data.spans)):
            for text, owner in zip(some.texts, some.owners, strict=True):
                found[owner].append(text)
        return cls(data=data, questions=questions, spans=spans)

    def document(self, place: int) -> Document:
        return self.data.documents[place]

    def written_for(self, document: Document) -> list[str]:
        """Its sentences, as a generator of queries; a draft has none beside its text."""
        place = self.data.collection.places[document.id]
        return list(self.spans[place]) if document.text == self.document(place).text else []

    def draft(self, place: int) -> Document:
        """A first version that says less: its first sentence alone."""
        whole = self.document(place)
        return Document(id=whole.id, title="", text=self.spans[place][0]) if self.spans[place] else whole


Life = Callable[[Shelf, World, Places, np.random.Generator], None]  # these documents arrive on the shelf


def plainly(shelf: Shelf, world: World, places: Places, draw: np.random.Generator) -> None:
    """Every document comes once, with all its questions."""
    del draw
    _add(shelf, world, places, world.questions)


def changing(shelf: Shelf, world: World, places: Places, draw: np.random.Generator) -> None:
    """Of every block a tenth comes as a draft and is updated, a tenth is taught a question that was not known before,
    and as many of those there are deleted and come back."""
    for block in _blocks(places):
        drafts, pupils = _some(block, draw), _some(block, draw)
        late = {place: world.questions[place][-1] for place in pupils if world.questions[place]}
        known = [
            [text for text in questions if text != late.get(place)] for place, questions in enumerate(world.questions)
        ]
        whole = np.setdiff1d(block, drafts, assume_unique=True)
        _add(shelf, world, whole, known)
        firsts = [world.draft(place) for place in drafts]
        shelf.add(firsts, {one.id: known[place][:1] for one, place in zip(firsts, drafts, strict=True)})
        there = np.array([world.data.collection.places[id] for id in shelf.records], dtype=np.intp)
        gone = draw.choice(there, size=min(len(drafts), len(there)), replace=False)
        back = {place: shelf.records[world.document(place).id] for place in gone}
        for place in gone:
            shelf.delete(world.document(place).id)
        for place in np.setdiff1d(drafts, gone):
            shelf.update(world.document(place), known[place])
        for place, text in late.items():
            if place not in back:
                shelf.teach(text, world.document(place).id)
        _add(shelf, world, gone, world.questions)


def contradicted(shelf: Shelf, world: World, places: Places, draw: np.random.Generator) -> None:
    """One question of a twentieth of the documents is taught to the document most like its own, then to its own."""
    for block in _blocks(places):
        _add(shelf, world, block, world.questions)
        there = np.array([world.data.collection.places[id] for id in shelf.records], dtype=np.intp)
        for place in _some(block, draw, TAUGHT_WRONG):
            if world.questions[place] and len(there) > 1:
                text = str(draw.choice(world.questions[place]))
                likeness = world.data.embeddings[there] @ world.data.embeddings[place]
                likeness[there == place] = -np.inf
                shelf.teach(text, world.document(there[int(likeness.argmax())]).id)
                shelf.teach(text, world.document(place).id)


def misled(shelf: Shelf, world: World, places: Places, draw: np.random.Generator) -> None:
    """One known question in ten belongs to another document of those that come with it."""
    told: list[list[str]] = [list(some) for some in world.questions]
    for place in places:
        for text in world.questions[place]:
            if draw.random() < SHARE:
                told[place].remove(text)
                told[int(draw.choice(places))].append(text)
    _add(shelf, world, places, told)


def at_random(world: World, draw: np.random.Generator, count: int) -> Places:
    """So many documents in a random order."""
    return draw.permutation(len(world.data.documents))[:count]


def by_topic(world: World, draw: np.random.Generator, count: int) -> Places:
    """The same, those with one title together, title after title."""
    places = at_random(world, draw, count)
    titles = [world.document(place).title for place in places]
    rank = {title: number for number, title in enumerate(dict.fromkeys(titles))}
    return places[np.argsort([rank[title] for title in titles], kind="stable")]


def by_likeness(world: World, draw: np.random.Generator, count: int) -> Places:
    """The same, those that are most like another first."""
    places = at_random(world, draw, count)
    rows = world.data.embeddings[places]
    likeness = rows @ rows.T
    np.fill_diagonal(likeness, -np.inf)
    return places[np.argsort(-likeness.max(axis=1), kind="stable")]


Order = Callable[[World, np.random.Generator, int], Places]
LIVES: dict[str, tuple[str, Order, Life]] = {
    "random": ("documents come in random order", at_random, plainly),
    "topics": ("topic by topic", by_topic, plainly),
    "likeness": ("near-duplicates first", by_likeness, plainly),
    "changing": ("deletes, updates and teaching mixed in", at_random, changing),
    "contradicted": ("contradictory teaching", at_random, contradicted),
    "misled": ("one known question in ten given to a wrong document", at_random, misled),
}


def _blocks(places: Places) -> Iterator[Places]:
    return (places[start : start + BLOCK] for start in range(0, len(places), BLOCK))


def _some(block: Places, draw: np.random.Generator, share: float = SHARE) -> Places:
    return draw.choice(block, size=max(1, round(share * len(block))), replace=False)


def _add(shelf: Shelf, world: World, places: Places, questions: Sequence[Sequence[str]]) -> None:
    documents = [world.document(place) for place in places]
    shelf.add(documents, {one.id: questions[place] for one, place in zip(documents, places, strict=True)})
