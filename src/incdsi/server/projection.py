"""The map: documents in two dimensions, by principal components of their vectors, on stable axes."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import UnknownDocument
from incdsi.index import Index
from incdsi.server.schemas import MapOut, Neighbour, NeighboursOut, Point

Floats = NDArray[np.float32]
MOST_POINTS = 5000
LONGEST_TITLE = 200  # characters shown
EDGE = 1.5


@dataclass(frozen=True, kw_only=True, eq=False)
class Axes:
    """The projection: a mean (h,), two directions (h, 2), and a scale that brings most points within 1."""

    number: int
    fitted_on: int
    mean: Floats
    directions: Floats
    scale: float

    @classmethod
    def fit(cls, unit: Floats, number: int, fitted_on: int) -> Axes:
        """From unit vectors (n, h); signs are fixed, so that the same vectors give the same map."""
        mean = unit.mean(axis=0) if len(unit) else np.zeros(unit.shape[1], dtype=np.float32)
        centred = (unit - mean).astype(np.float64)
        _, directions = np.linalg.eigh(centred.T @ centred)
        best = np.zeros((unit.shape[1], 2))
        best[:, : min(2, directions.shape[1])] = directions[:, ::-1][:, :2]
        best *= np.where(best[np.abs(best).argmax(axis=0), (0, 1)] < 0, -1.0, 1.0)
        spread = np.quantile(np.abs(centred @ best), 0.98) if len(unit) else 0.0
        return cls(
            number=number,
            fitted_on=fitted_on,
            mean=mean,
            directions=best.astype(np.float32),
            scale=float(spread) or 1.0,
        )

    def place(self, unit: Floats) -> Floats:
        """Coordinates (n, 2) of unit vectors (n, h)."""
        placed: Floats = np.clip((unit - self.mean) @ self.directions / self.scale, -EDGE, EDGE)
        return placed

    def fits(self, count: int) -> bool:
        """Whether the number of documents has neither doubled nor halved."""
        return self.fitted_on / 2 <= count < 2 * self.fitted_on


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """The map at one version: ids with unit vectors (n, h) and coordinates (n, 2), and which of them to show."""

    version: int
    axes: Axes
    ids: Sequence[str]
    place: dict[str, int]
    unit: Floats
    coordinates: Floats
    shown: NDArray[np.intp]


class Projection:
    """The map of an index, redrawn after a change; callers wait for each other."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._mutex = threading.Lock()
        self._drawn: Drawn | None = None

    def points(self) -> MapOut:
        """At most 5,000 documents, chosen by a hash of their ids so that the choice is stable."""
        with self._mutex:
            drawn = self._current()
        places = drawn.shown.tolist()
        titles = self._titles(drawn, places)
        points = [point for place in places if (point := self._point(drawn, place, titles)) is not None]
        return MapOut(points=points, documents=len(drawn.ids), axes=drawn.axes.number, version=drawn.version)

    def near(self, id: str, k: int) -> NeighboursOut:
        """A document and the k with the most similar vectors."""
        with self._mutex:
            drawn = self._current()
            if id not in drawn.place:
                raise UnknownDocument(f"no document {id!r} on the map; check the id")
            here = drawn.place[id]
            similar = drawn.unit @ drawn.unit[here]
            similar[here] = -np.inf
            best = np.argsort(-similar, kind="stable")[: min(k, len(similar) - 1)].tolist()
        titles = self._titles(drawn, [here, *best])
        point = self._point(drawn, here, titles)
        around = [(self._point(drawn, place, titles), float(similar[place])) for place in best]
        if point is None:
            raise UnknownDocument(f"document {id!r} has just been deleted")
        neighbours = [
            Neighbour(**one.model_dump(), similarity=round(cosine, 4)) for one, cosine in around if one is not None
        ]
        return NeighboursOut(point=point, neighbours=neighbours, axes=drawn.axes.number, version=drawn.version)

    def _titles(self, drawn: Drawn, places: Sequence[int]) -> dict[str, str]:
        return self._index.engine.titles([drawn.ids[place] for place in places], LONGEST_TITLE)

    def _current(self) -> Drawn:
        version = self._index.version
        if self._drawn is None or self._drawn.version != version:
            self._drawn = self._draw(version, self._drawn)
        return self._drawn

    def _draw(self, version: int, before: Drawn | None) -> Drawn:
        ids, vectors = self._index.engine.vectors()
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        hashes = np.array([zlib.crc32(id.encode("utf-8", "surrogatepass")) for id in ids], dtype=np.int64)
        shown = np.argsort(hashes, kind="stable")[:MOST_POINTS]
        if before is not None and before.axes.fits(len(ids)) and before.unit.shape[1] == unit.shape[1]:
            axes = before.axes
        else:
            axes = Axes.fit(unit[shown], 1 if before is None else before.axes.number + 1, len(ids))
        place = {id: number for number, id in enumerate(ids)}
        return Drawn(
            version=version, axes=axes, ids=ids, place=place, unit=unit, coordinates=axes.place(unit), shown=shown
        )

    def _point(self, drawn: Drawn, place: int, titles: Mapping[str, str]) -> Point | None:
        """None if the document has been deleted meanwhile."""
        id = drawn.ids[place]
        x, y = (round(float(value), 4) for value in drawn.coordinates[place])
        return Point(id=id, title=titles[id], x=x, y=y) if id in titles else None
