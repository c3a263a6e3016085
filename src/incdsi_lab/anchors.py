"""What anybody could do in ten lines with the same texts, questions and encoder: a claim must stand above these.

| anchor                 | how it ranks                                                                       |
| ---------------------- | ---------------------------------------------------------------------------------- |
| words                  | BM25 over the text                                                                 |
| words + questions      | BM25 over the text with the known questions appended                               |
| best sentence          | the nearest of a document's generated queries, or its text where it has none       |
| nearest question       | the nearest of a document's known questions                                        |
| plain hybrid           | standard scores of dense search and BM25, added up                                 |
| plain hybrid, by ranks | reciprocal ranks of dense search and BM25, added up                                |
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidInput
from incdsi.lexical import LexicalIndex
from incdsi.progress import Stopwatch
from incdsi_lab.baselines.protocol import Floats, Part, Questions, Ranked
from incdsi_lab.baselines.ranking import best_of
from incdsi_lab.ranking import Ranks, ranks

PORTION = 256  # questions whose scores are alive at a time
LATER = 60.0  # added to every rank before its reciprocal is taken, as is usual


class Anchor:
    """A way of searching by all that is known of the documents so far; subclasses score a few questions at a time."""

    name: str

    def __init__(self) -> None:
        self._part: Part | None = None
        self._watch = Stopwatch()

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._watch.seconds

    @property
    def part(self) -> Part:
        """Everything so far; InvalidInput before `fit`."""
        if self._part is None:
            raise InvalidInput("there is nothing to search yet; call fit first")
        return self._part

    def fit(self, initial: Part) -> None:
        with self._watch.step("fit"):
            self._take(initial)

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._take(self.part.followed_by(new))

    def search(self, queries: Questions, k: int) -> Ranked:
        with self._watch.step("search"):
            return best_of(self._blocks(queries), k)

    def ranks(self, questions: Questions) -> Ranks:
        """The rank of each question's document; a tie counts against it."""
        starts = range(0, len(questions), PORTION)
        found = [
            ranks(block, questions.owners[start : start + PORTION])
            for start, block in zip(starts, self._blocks(questions), strict=True)
        ]
        return np.concatenate(found) if found else np.empty(0, dtype=np.intp)

    def scores(self, questions: Questions) -> Floats:
        """The score of every document for each of these few questions, (b, n)."""
        raise NotImplementedError

    def _take(self, part: Part) -> None:
        self._part = part

    def _blocks(self, questions: Questions) -> Iterator[Floats]:
        for start in range(0, len(questions), PORTION):
            yield self.scores(questions.take(np.arange(start, min(start + PORTION, len(questions)))))


class Meaning(Anchor):
    """The text's own embedding: dense search."""

    name = "dense"

    def scores(self, questions: Questions) -> Floats:
        return questions.embeddings @ self.part.embeddings.T


class Words(Anchor):
    """BM25 over the text."""

    name = "words"

    def scores(self, questions: Questions) -> Floats:
        documents = len(self.part)
        return np.stack([self._words.scores(text, documents) for text in questions.texts])

    def _take(self, part: Part) -> None:
        super()._take(part)
        self._words = LexicalIndex()
        self._words.add_many(range(len(part)), self._texts(part))

    def _texts(self, part: Part) -> list[str]:
        return [document.content for document in part.documents]


class KnownWords(Words):
    """BM25 over the text with the known questions appended."""

    name = "words + questions"

    def _texts(self, part: Part) -> list[str]:
        texts, known = super()._texts(part), part.queries.natural()
        for text, owner in zip(known.texts, known.owners, strict=True):
            texts[owner] += f"\n{text}"
        return texts


class BestSentence(Anchor):
    """The nearest of a document's generated queries, or its text where it has none."""

    name = "best sentence"

    def scores(self, questions: Questions) -> Floats:
        written = self.part.queries.take(np.flatnonzero(self.part.queries.generated))
        bare = np.setdiff1d(np.arange(len(self.part)), written.owners)
        rows = np.concatenate([written.embeddings, self.part.embeddings[bare]])
        return nearest(questions.embeddings, rows, np.concatenate([written.owners, bare]), len(self.part))


class NearestQuestion(Anchor):
    """The nearest of a document's known questions; one that nobody asked about is not found."""

    name = "nearest question"

    def scores(self, questions: Questions) -> Floats:
        known = self.part.queries.natural()
        return nearest(questions.embeddings, known.embeddings, known.owners, len(self.part))


class _Both(Anchor):
    """Dense search and BM25 over the text."""

    def __init__(self) -> None:
        super().__init__()
        self.meaning, self.words = Meaning(), Words()

    def _take(self, part: Part) -> None:
        super()._take(part)
        self.meaning._take(part)
        self.words._take(part)


class PlainHybrid(_Both):
    """Standard scores of dense search and BM25, added up."""

    name = "plain hybrid"

    def scores(self, questions: Questions) -> Floats:
        pairs = zip(self.meaning.scores(questions), self.words.scores(questions), strict=True)
        return np.stack([standardised(meaning) + standardised(words) for meaning, words in pairs])


class RankHybrid(_Both):
    """Reciprocal ranks of dense search and BM25, added up."""

    name = "plain hybrid, by ranks"

    def scores(self, questions: Questions) -> Floats:
        pairs = zip(self.meaning.scores(questions), self.words.scores(questions), strict=True)
        return np.stack([_reciprocal(meaning) + _reciprocal(words) for meaning, words in pairs])


def anchors() -> list[Anchor]:
    """All of them, not fitted yet."""
    return [Meaning(), Words(), KnownWords(), BestSentence(), NearestQuestion(), PlainHybrid(), RankHybrid()]


def nearest(queries: Floats, rows: Floats, owners: NDArray[np.integer], documents: int) -> Floats:
    """The best inner product of each query (b, h) with each document's own rows (m, h), (b, n); -inf without any."""
    order = np.argsort(owners, kind="stable")
    there, starts = np.unique(owners[order], return_index=True)
    scores = np.full((len(queries), documents), -np.inf, dtype=np.float32)
    if len(there):
        scores[:, there] = np.maximum.reduceat(queries @ rows[order].T, starts, axis=1)
    return scores


def _reciprocal(scores: Floats) -> Floats:
    """1 / (60 + rank) of every document; those that share a score share the best rank."""
    sorted_scores = np.sort(scores)
    ahead = len(scores) - np.searchsorted(sorted_scores, scores, side="right")
    return (1.0 / (LATER + 1.0 + ahead)).astype(np.float32)


def standardised(scores: Floats) -> Floats:
    """Standard deviations from the mean; zeros where all are the same."""
    values = scores.astype(np.float64)
    if len(values) == 0 or not values.std() > 0:
        return np.zeros_like(scores)
    result: Floats = (scores - np.float32(values.mean())) / np.float32(values.std())
    return result
