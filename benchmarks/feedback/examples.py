"""What vector databases offer: examples given with the query, and more vectors a document. Qdrant's own client,
in its local mode (in this process, on disk), with the same embeddings.

Recommendation and relevance feedback hold for one query alone, so somebody has to remember the lessons. Here a second
collection does: when the nearest taught question is as similar as a threshold, its document is given as an example.
The threshold is chosen by validation questions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.feedback.courses import Course
from benchmarks.feedback.ways import NOBODY, Found, Way, Words, padded
from incdsi_lab.baselines.protocol import Questions

SAME = 0.9999  # as similar as a question is to itself, but for rounding
THRESHOLDS = (0.5, 0.6, 0.7, 0.8, SAME)
WRONG = 2  # best hits, other than the right one, that count as wrong
ALPHA, BETA, GAMMA = 1.0, 0.75, 0.15  # Rocchio's weights as textbooks have them
DEPTH = 100  # of each list that is fused
LATER = 60  # added to a rank before its reciprocal is taken
Vector = NDArray[np.float32]


class Qdrant(Way):
    """Documents as points: dense search, until something is taught."""

    system = "Qdrant"

    def __init__(self, course: Course, folder: Path) -> None:
        from qdrant_client import QdrantClient

        super().__init__(course, folder)
        self.vectors = course.data.embeddings
        self.client = QdrantClient(path=str(folder))
        self.make("documents")
        self.put("documents", range(len(self.vectors)), self.vectors, range(len(self.vectors)))

    def make(self, name: str) -> None:
        from qdrant_client import models

        vectors = models.VectorParams(size=self.encoder.dimension, distance=models.Distance.COSINE)
        self.client.create_collection(name, vectors_config=vectors)

    def put(self, name: str, ids: Sequence[int], vectors: Any, places: Sequence[int]) -> None:
        from qdrant_client import models

        points = [
            models.PointStruct(id=id, vector=vector.tolist(), payload={"place": int(place)})
            for id, vector, place in zip(ids, vectors, places, strict=True)
        ]
        self.client.upsert(name, points)

    def ask(self, name: str, queries: Sequence[Any], k: int) -> list[list[Any]]:
        """The k best points for each query, which is a vector or one of Qdrant's own."""
        return [self.client.query_points(name, query=query, limit=k).points for query in queries]

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        found = self.ask("documents", self.queries(questions), k)
        return padded([[point.payload["place"] for point in some] for some in found], k)

    def queries(self, questions: Questions) -> list[Any]:
        return [vector.tolist() for vector in questions.embeddings]


class MorePoints(Qdrant):
    """The taught question is one more point of its document."""

    name = "question as one more vector"

    def teach(self, text: str, place: int) -> None:
        count = self.client.count("documents").count
        self.put("documents", [count], self.encoder.encode([text]), [place])

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        if k == 1:
            return super().ranked(questions)
        return padded([list(dict.fromkeys(some)) for some in super().ranked(questions, 2 * k).tolist()], k)


class Moved(Qdrant):
    """The document's vector is averaged with its taught questions: Rocchio on the side of documents."""

    name = "vector averaged with its questions"
    parameters: Mapping[str, Sequence[float]] = {"weight": (0.5, 1.0, 2.0, 4.0)}

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self._taught: dict[int, list[Vector]] = {}
        self._weight = 1.0

    def teach(self, text: str, place: int) -> None:
        self._taught.setdefault(place, []).append(self.encoder.encode([text])[0])
        self._move(place)

    def set(self, chosen: Mapping[str, float]) -> None:
        self._weight = chosen["weight"]
        for place in self._taught:
            self._move(place)

    def _move(self, place: int) -> None:
        moved = self.vectors[place] + self._weight * np.mean(self._taught[place], axis=0)
        self.put("documents", [place], moved[None], [place])


class Remembered(Qdrant):
    """Lessons in a collection of their own; the nearest one's document becomes an example of the query."""

    parameters: Mapping[str, Sequence[float]] = {"threshold": THRESHOLDS}

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self.make("lessons")
        self.lessons: list[tuple[Vector, list[Vector]]] = []  # the right document's vector, those of wrong ones
        self.threshold = SAME
        self._looked_up: tuple[int, tuple[str, ...]] = (0, ())
        self._near: list[Any] = []

    def teach(self, text: str, place: int) -> None:
        embedding = self.encoder.encode([text])
        (best,) = self.ask("documents", embedding.tolist(), WRONG + 1)
        wrong = [point.payload["place"] for point in best if point.payload["place"] != place][:WRONG]
        self.put("lessons", [len(self.lessons)], embedding, [place])
        self.lessons.append((self.vectors[place], [self.vectors[one] for one in wrong]))

    def queries(self, questions: Questions) -> list[Any]:
        if not self.lessons:
            return super().queries(questions)
        return [
            self.query(vector, *self.lessons[lesson.id]) if lesson.score >= self.threshold else vector.tolist()
            for vector, lesson in zip(questions.embeddings, self._nearest(questions), strict=True)
        ]

    def _nearest(self, questions: Questions) -> list[Any]:
        """The nearest lesson of each question, looked up once for all thresholds."""
        known, asked = len(self.lessons), questions.texts
        if self._looked_up != (known, asked):
            self._looked_up = known, asked
            self._near = [some[0] for some in self.ask("lessons", questions.embeddings.tolist(), 1)]
        return self._near

    def query(self, vector: Vector, right: Vector, wrong: list[Vector]) -> Any:
        """What to ask when a lesson is near."""
        raise NotImplementedError

    def set(self, chosen: Mapping[str, float]) -> None:
        self.threshold = chosen["threshold"]


class Recommended(Remembered):
    """Recommendation: the query and the right document are positive examples.

    As vectors: what is given by its id, Qdrant leaves out of the results.
    """

    def __init__(self, course: Course, folder: Path, strategy: str) -> None:
        super().__init__(course, folder)
        self._strategy = strategy
        self.name = f"recommendation, {strategy.replace('_', ' ')}"

    def query(self, vector: Vector, right: Vector, wrong: list[Vector]) -> Any:
        from qdrant_client import models

        examples = [vector.tolist(), right.tolist()]
        strategy = models.RecommendStrategy(self._strategy)
        return models.RecommendQuery(recommend=models.RecommendInput(positive=examples, strategy=strategy))


class Feedback(Remembered):
    """Qdrant's relevance feedback query: the right document scores 1, the best other hits 0."""

    name = "relevance feedback query"
    parameters: Mapping[str, Sequence[float]] = {"threshold": THRESHOLDS, "c": (0.1, 0.3, 1.0)}

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self._slope = 1.0

    def query(self, vector: Vector, right: Vector, wrong: list[Vector]) -> Any:
        from qdrant_client import models

        items = [models.FeedbackItem(example=right.tolist(), score=1.0)]
        items += [models.FeedbackItem(example=one.tolist(), score=0.0) for one in wrong]
        naive = models.NaiveFeedbackStrategyParams(a=1.0, b=1.0, c=self._slope)
        strategy = models.NaiveFeedbackStrategy(naive=naive)
        given = models.RelevanceFeedbackInput(target=vector.tolist(), feedback=items, strategy=strategy)
        return models.RelevanceFeedbackQuery(relevance_feedback=given)

    def set(self, chosen: Mapping[str, float]) -> None:
        super().set(chosen)
        self._slope = chosen["c"]


class Rocchio(Remembered):
    """The query moves towards the right document and away from the best other hits."""

    name = "Rocchio on the query"

    def query(self, vector: Vector, right: Vector, wrong: list[Vector]) -> Any:
        away = np.mean(wrong, axis=0) if wrong else np.zeros_like(vector)
        return (ALPHA * vector + BETA * right - GAMMA * away).tolist()


class Both(Way):
    """One more vector in Qdrant, appended in bm25s, and reciprocal ranks added up."""

    name, system = "one more vector + appended, by ranks", "Qdrant + bm25s"
    timed_lessons = Words.timed_lessons

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self._parts = (MorePoints(course, folder), Words(course, folder))

    def teach(self, text: str, place: int) -> None:
        for part in self._parts:
            part.teach(text, place)

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        depth = min(DEPTH, len(self.places))
        lists = [part.ranked(questions, depth) for part in self._parts]
        scores = np.zeros((len(questions), len(self.places) + 1))  # the last column is nobody's
        rows = np.arange(len(questions))
        for found in lists:
            for rank in range(found.shape[1]):
                scores[rows, found[:, rank]] += 1 / (LATER + 1 + rank)
        scores[:, NOBODY] = -1
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
