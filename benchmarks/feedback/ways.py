"""Ways to make use of "this was the right document": an index's `teach`, and texts with the question appended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.feedback.courses import Course
from benchmarks.index.run import WARM
from incdsi import Index
from incdsi.text.generators import Spans
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.embedded import SPANS, KnownTexts

Found = NDArray[np.intp]  # (questions, k) places of documents, best first; -1 where there is none
PORTION = 128
NOBODY = -1


class Way:
    """A store of a course's documents that is told which one was right."""

    name: str
    system: str
    parameters: Mapping[str, Sequence[float]] = {}  # what each may be
    timed_lessons: int | None = None  # the first so many, or all

    def __init__(self, course: Course, folder: Path) -> None:
        self.course, self.folder = course, folder
        self.encoder = course.data.encoder
        self.places = {document.id: place for place, document in enumerate(course.data.documents)}

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        """The best documents by embeddings made before."""
        raise NotImplementedError

    def teach(self, text: str, place: int) -> None:
        """Take a lesson, encoding included; the next search knows it."""
        raise NotImplementedError

    def choose(self, questions: Questions) -> dict[str, float]:
        """Set its parameters, if it has any, to those that answer most of these questions; what was chosen."""
        choices = [dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())]
        if len(choices) == 1:
            return choices[0]
        shares = []
        for chosen in choices:
            self.set(chosen)
            shares.append(float((self.first(questions) == questions.owners).mean()))
        best = choices[int(np.argmax(shares))]
        self.set(best)
        return best

    def set(self, chosen: Mapping[str, float]) -> None:
        """Take these parameters."""
        raise NotImplementedError

    def first(self, questions: Questions) -> NDArray[np.intp]:
        return self.ranked(questions)[:, 0]


class Taught(Way):
    """`teach`: the document's vector is solved again."""

    name, system = "incdsi teach", "incdsi"

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self._known = KnownTexts(course.data)
        Index.create(folder / "index", self.encoder).close()
        with Index.open(folder / "index", self._known, generator=Spans(limit=SPANS)) as index:
            index.add_many(course.data.documents)
        self._writing: Index | None = None

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        if self._writing is not None:
            self._writing.close()
            self._writing = None
        with Index.open(self.folder / "index", self._known) as index:
            hits = index.search_many(questions.texts, k)
        return padded([[self.places[hit.document_id] for hit in some] for some in hits], k)

    def teach(self, text: str, place: int) -> None:
        if self._writing is None:
            self._writing = Index.open(self.folder / "index", self.encoder)
        self._writing.teach(text, self.course.data.documents[place].id)


class Appended(Way):
    """The question is appended to the text, which is embedded again, in Chroma."""

    name, system = "question appended to the text", "Chroma"

    def __init__(self, course: Course, folder: Path) -> None:
        import chromadb
        from chromadb.config import Settings

        super().__init__(course, folder)
        client = chromadb.PersistentClient(str(folder), settings=Settings(anonymized_telemetry=False))
        self._texts = course.contents
        self._collection = client.create_collection(
            "documents", embedding_function=None, configuration={"hnsw": {"space": "ip"}}
        )
        for start in range(0, len(self._texts), PORTION):
            part = slice(start, start + PORTION)
            ids = [document.id for document in course.data.documents[part]]
            self._collection.add(ids=ids, embeddings=course.data.embeddings[part], documents=self._texts[part])

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        found: list[list[int]] = []
        for start in range(0, len(questions), PORTION):
            part = questions.embeddings[start : start + PORTION]
            ids = self._collection.query(query_embeddings=part, n_results=k)["ids"]
            found += [[self.places[id] for id in some] for some in ids]
        return padded(found, k)

    def teach(self, text: str, place: int) -> None:
        self._texts[place] += f"\n{text}"
        whole = self._texts[place]
        self._collection.update(
            ids=self.course.data.documents[place].id, embeddings=self.encoder.encode([whole]), documents=whole
        )


class Words(Way):
    """The question is appended to the text, and bm25s indexes all texts anew, as it has to.

    After the first lessons, which are timed, it does so once at the next search.
    """

    name, system = "question appended to the text", "bm25s"
    timed_lessons = WARM + 25

    def __init__(self, course: Course, folder: Path) -> None:
        super().__init__(course, folder)
        self._tokens = _tokens(course.contents)
        self._index: Any = None
        self._lessons = 0

    def ranked(self, questions: Questions, k: int = 1) -> Found:
        if self._index is None:
            self._build()
        places, scores = self._index.retrieve(_tokens(questions.texts), k=k, show_progress=False)
        return np.where(scores > 0, places, NOBODY).astype(np.intp)

    def teach(self, text: str, place: int) -> None:
        self._tokens[place] += _tokens([text])[0]
        self._index = None
        if self._lessons < self.timed_lessons:
            self._build()
        self._lessons += 1

    def _build(self) -> None:
        import bm25s

        self._index = bm25s.BM25()
        self._index.index(self._tokens, show_progress=False)


def _tokens(texts: Sequence[str]) -> list[list[str]]:
    import bm25s

    found: list[list[str]] = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return found


def padded(found: Sequence[Sequence[int]], k: int) -> Found:
    """Rows of k places each, filled up with nobody."""
    return np.array([[*some[:k], *[NOBODY] * (k - len(some))] for some in found], dtype=np.intp).reshape(-1, k)
