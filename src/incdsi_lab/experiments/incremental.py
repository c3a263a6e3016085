"""IncDSI as a method of the study, in the paper's form and in the general one; and learned fused with lexical."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from incdsi.hyperparameters import Hyperparameters
from incdsi.progress import Progress, Stopwatch
from incdsi_lab.baselines.lexical import BM25
from incdsi_lab.baselines.protocol import Floats, Part, Questions, Ranked
from incdsi_lab.baselines.ranking import best_of, blocks_of_scores
from incdsi_lab.baselines.vectors import VectorMethod
from incdsi_lab.embedded import grouped
from incdsi_lab.fusion import fuse
from incdsi_lab.streams import Newcomers, Solver, State, add_all


def newcomers(part: Part) -> Newcomers:
    """The part's documents in order, each with its queries."""
    queries = grouped(part.queries.embeddings, part.queries.owners, len(part))
    return Newcomers(texts=part.embeddings, queries=queries)


class Incremental(VectorMethod):
    """Each new document's vector solved for; no other vector changes.

    `state` is the initial model, made elsewhere; `solver` is ours or the paper's.
    """

    def __init__(
        self,
        name: str,
        how: Hyperparameters,
        state: State,
        *,
        solver: Solver = "ours",
        progress: Progress | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self._how, self._state, self._solver, self._progress = how, state, solver, progress

    def fit(self, initial: Part) -> None:
        """Begin with the state that was given."""
        assert len(initial) == len(self._state)
        self._vectors = self._state.vectors
        _ = self._state.live  # created now: an index is in memory before anything is added to it

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            stream = add_all(
                self._state, newcomers(new), hyperparameters=self._how, solver=self._solver, progress=self._progress
            )
        self._state, self._vectors = stream.state, stream.state.vectors


class Fused:
    """The sum of learned and lexical scores, each in standard deviations, as the index ranks."""

    name = "fused"

    def __init__(self, learned: Incremental, lexical: BM25, lexical_weight: float) -> None:
        self._learned, self._lexical, self._weight = learned, lexical, lexical_weight
        self._watch = Stopwatch()

    @property
    def seconds(self) -> Mapping[str, float]:
        return self._watch.seconds

    def fit(self, initial: Part) -> None:
        self._learned.fit(initial)
        self._lexical.fit(initial)

    def add(self, new: Part) -> None:
        with self._watch.step("add"):
            self._learned.add(new)
            self._lexical.add(new)

    def search(self, queries: Questions, k: int) -> Ranked:
        with self._watch.step("search"):
            return best_of(self._blocks(queries), k)

    def _blocks(self, queries: Questions) -> Iterator[Floats]:
        learned = blocks_of_scores(self._learned.embedded(queries), self._learned.document_vectors)
        for dense, words in zip(learned, self._lexical.blocks(queries.texts), strict=True):
            rows = [fuse(one, other, self._weight) for one, other in zip(dense, words, strict=True)]
            yield np.stack(rows)
