"""IncDSI as a method of the study, in the paper's form and in the general one."""

from __future__ import annotations

from incdsi.hyperparameters import Hyperparameters
from incdsi.progress import Progress
from incdsi_lab.baselines.protocol import Part
from incdsi_lab.baselines.vectors import VectorMethod
from incdsi_lab.embedded import grouped
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
