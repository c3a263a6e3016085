"""Add documents one after another, from embeddings alone: what every experiment and every tuning trial does.

No vector ever changes once it is placed, so the vectors after t additions are the first of those at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.engine.local import Live
from incdsi.engine.settings import Method, Settings
from incdsi.errors import InvalidInput, MissingExtra
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import Draft
from incdsi.index.placement import BATCH, place
from incdsi.progress import Progress, Stopwatch
from incdsi.records import Record, StoredQuery
from incdsi.rows import LocalRows
from incdsi.solver import Problem
from incdsi.solver.active_set import NO_RIVAL
from incdsi.text.queries import represent
from incdsi_lab.baselines.protocol import Questions
from incdsi_lab.embedded import Embedded, grouped

Floats = NDArray[np.float32]
Places = NDArray[np.intp]
Solver = Literal["ours", "lbfgs", "lbfgs-plain"]
NAMELESS = Document(id="-", text="")  # streams know documents by their places
T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, kw_only=True, eq=False)
class Newcomers:
    """Documents to add, in order: their texts' embeddings (m, h) and those of their queries, (k, h) each."""

    texts: Floats
    queries: Sequence[Floats]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.queries):
            raise InvalidInput(
                f"expected queries for each of {len(self.texts)} documents, found {len(self.queries)}; "
                "pass an empty (0, h) array for a document without any"
            )

    @classmethod
    def of(cls, embedded: Embedded, places: Places, questions: Sequence[Questions]) -> Newcomers:
        """The documents in these places, in this order, each with its own of the questions."""
        queries = embedded.by_document(questions)
        return cls(texts=embedded.embeddings[places], queries=[queries[document] for document in places])

    def __len__(self) -> int:
        return len(self.texts)

    def at(self, places: Places) -> Newcomers:
        """Those in these places, in this order."""
        return Newcomers(texts=self.texts[places], queries=[self.queries[document] for document in places])


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """Document vectors (n, h), and the preserve rows (m, h) with the places and own scores (m,) of their documents.

    The form says what is preserved: in the paper's each document's mean query, in the general form every query
    its document wins. It also says how documents are added to it.
    """

    form: Method
    vectors: Floats
    owners: Places
    rows: Floats
    own_scores: NDArray[np.float64]

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.vectors)

    @classmethod
    def empty(cls, dimension: int, form: Method) -> State:
        """No documents at all: an index may start empty."""
        none = np.empty((0, dimension), dtype=np.float32)
        return cls(form=form, vectors=none, owners=np.empty(0, dtype=np.intp), rows=none, own_scores=np.empty(0))

    @classmethod
    def of(cls, vectors: Floats, documents: Newcomers, form: Method) -> State:
        """A model from elsewhere, such as stage 1: the vectors (n, h) of these documents."""
        if len(vectors) != len(documents):
            raise InvalidInput(f"expected a vector for each of {len(documents)} documents, found {len(vectors)}")
        queries = _means(documents) if form == "paper" else documents.queries
        owners = np.repeat(np.arange(len(queries)), [len(some) for some in queries])
        rows = np.concatenate([np.empty((0, vectors.shape[1]), dtype=np.float32), *queries])
        if form == "general":
            best = _filled(vectors).best(rows)[1]
            owners, rows = owners[best == owners], rows[best == owners]
        own = np.einsum("ij,ij->i", rows.astype(np.float64), vectors[owners].astype(np.float64))
        return cls(form=form, vectors=vectors, owners=owners, rows=rows, own_scores=own)

    @cached_property
    def live(self) -> Live:
        """The same documents as an open index holds them, without their words; not to be changed."""
        live = Live(_settings(self))
        queries = [_unworded(some, preserved=True) for some in grouped(self.rows, self.owners, len(self))]
        live.put(
            [
                Record(document=NAMELESS, vector=vector, anchor=vector, queries=some, row=row)
                for row, (vector, some) in enumerate(zip(self.vectors, queries, strict=True), start=1)
            ]
        )
        return live

    def only(self, places: Places) -> State:
        """The same with these documents alone, in this order."""
        moved = np.full(len(self), -1, dtype=np.intp)
        moved[places] = np.arange(len(places))
        kept = np.flatnonzero(moved[self.owners] >= 0)
        return State(
            form=self.form,
            vectors=self.vectors[places],
            owners=moved[self.owners[kept]],
            rows=self.rows[kept],
            own_scores=self.own_scores[kept],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Stream:
    """The outcome of adding documents: the last state, and the seconds each step had taken at every mark.

    `constrain` is the search for rivals, `solve` the solver, `append` what makes the next document see this one.
    Encoding and query generation come before and are not counted.
    """

    before: int
    state: State
    seconds: dict[int, dict[str, float]]


def add_all(
    state: State,
    newcomers: Newcomers,
    *,
    hyperparameters: Hyperparameters,
    solver: Solver = "ours",
    marks: Iterable[int] = (),
    batch: int = BATCH,
    progress: Progress | None = None,
) -> Stream:
    """Add documents in order, each seeing those before it, in the form of the state.

    In the paper's form the anchor is zero, whatever the hyperparameters' scale. `ours` shares passes among
    `batch` documents with the result of one by one; `lbfgs` is the paper's solver and `lbfgs-plain` its
    ablation without the square, both one by one. A document without queries is placed by its text alone.
    `marks` are the numbers of additions to record times at; the end is always one.
    """
    total = len(newcomers)
    adder = _Ours(state, hyperparameters) if solver == "ours" else _Theirs(state, newcomers, hyperparameters, solver)
    watch = Stopwatch()
    seconds: dict[int, dict[str, float]] = {}
    ends = {*range(batch, total, batch), *(mark for mark in marks if 0 <= mark <= total), total}
    begin = 0
    for end in sorted(ends):
        if end > begin:
            adder.add(newcomers.at(np.arange(begin, end)), watch)
        seconds[end] = dict(watch.seconds)
        begin = end
        if progress is not None:
            progress(end, total)
    wanted = {*marks, total}
    return Stream(
        before=len(state),
        state=adder.state(),
        seconds={end: spent for end, spent in seconds.items() if end in wanted},
    )


class _Ours:
    """The placement of the product, in an index that is in memory alone."""

    def __init__(self, state: State, how: Hyperparameters) -> None:
        if state.form == "paper":
            how = replace(how, anchor_scale=0.0)
        self._settings = replace(_settings(state), hyperparameters=how)
        self._vectors = [state.vectors]
        self._live = state.live.bench()

    def add(self, newcomers: Newcomers, watch: Stopwatch) -> None:
        drafts = [
            Draft(document=NAMELESS, embedding=text, queries=_unworded(queries), row=row)
            for row, (text, queries) in enumerate(
                zip(newcomers.texts, newcomers.queries, strict=True), start=len(self._live) + 1
            )
        ]
        records = [one.record for one in place(self._live, drafts, self._settings, watch=watch)]
        with watch.step("append"):
            self._live.put(records)
        self._vectors.append(np.stack([record.vector for record in records]))

    def state(self) -> State:
        owners, rows, own_scores = self._live.vectors.preserve_arrays()
        vectors = np.concatenate(self._vectors)
        return State(form=self._settings.method, vectors=vectors, owners=owners, rows=rows, own_scores=own_scores)


class _Theirs:
    """The paper's solver, one document at a time over all rows; arrays have room for all that will come."""

    def __init__(self, state: State, newcomers: Newcomers, how: Hyperparameters, solver: Solver) -> None:
        try:
            from incdsi_lab.lbfgs import LBFGS
        except ImportError as error:
            raise MissingExtra(
                "the paper's solver needs torch; install it with: pip install 'incdsi[train]'"
            ) from error
        self._solver = LBFGS(hinge="plain" if solver == "lbfgs-plain" else "squared")
        self._form: Method = state.form
        self._how = how
        more = sum(max(1, len(some)) for some in newcomers.queries)
        self._vectors = _with_room(state.vectors, len(newcomers))
        self._rows = _with_room(state.rows, more)
        self._own_scores = _with_room(state.own_scores, more)
        self._owners = _with_room(state.owners, more)
        self._documents, self._count = len(state), len(state.rows)

    def add(self, newcomers: Newcomers, watch: Stopwatch) -> None:
        for queries, anchor in zip(*_constraints(newcomers, self._form, self._how), strict=True):
            with watch.step("constrain"):
                scores = queries @ self._vectors[: self._documents].T
                rivals = scores.max(axis=1, initial=NO_RIVAL).astype(np.float64)
                problem = Problem(
                    queries,
                    rivals + self._how.margins.retrieve,
                    self._rows[: self._count],
                    self._own_scores[: self._count] - self._how.margins.preserve,
                    anchor,
                )
            with watch.step("solve"):
                vector, _ = self._solver.minimise(problem, self._how.weights)
            with watch.step("append"):
                self._append(vector.astype(np.float32), queries, rivals)

    def state(self) -> State:
        return State(
            form=self._form,
            vectors=self._vectors[: self._documents],
            owners=self._owners[: self._count],
            rows=self._rows[: self._count],
            own_scores=self._own_scores[: self._count],
        )

    def _append(self, vector: Floats, queries: Floats, rivals: NDArray[np.float64]) -> None:
        own = queries.astype(np.float64) @ vector.astype(np.float64)
        kept = queries.any(axis=1) & ((own > rivals) | (self._form == "paper"))
        end = self._count + int(kept.sum())
        self._rows[self._count : end] = queries[kept]
        self._own_scores[self._count : end] = own[kept]
        self._owners[self._count : end] = self._documents
        self._vectors[self._documents] = vector
        self._documents, self._count = self._documents + 1, end


def _settings(state: State) -> Settings:
    return Settings(fingerprint="", dimension=state.vectors.shape[1], model=None, method=state.form)


def _constraints(
    newcomers: Newcomers, form: Method, how: Hyperparameters
) -> tuple[Sequence[Floats], list[NDArray[np.float64]]]:
    """What each document should win, (k, h) each, and its anchor (h,)."""
    texts = newcomers.texts.astype(np.float64)
    if form == "general":
        return newcomers.queries, list(how.anchor_scale * texts)
    return _means(newcomers), list(np.zeros_like(texts))


def _means(documents: Newcomers) -> list[Floats]:
    """Each document's mean query, or its text where it has none, (1, h)."""
    return [
        represent(some)[None] if len(some) else text[None]
        for some, text in zip(documents.queries, documents.texts, strict=True)
    ]


def _unworded(embeddings: Floats, *, preserved: bool = False) -> tuple[StoredQuery, ...]:
    """Queries by their embeddings (k, h) alone."""
    return tuple(StoredQuery(text="", embedding=one, preserved=preserved) for one in embeddings)


def _filled(vectors: Floats) -> LocalRows:
    rows = LocalRows(vectors.shape[1])
    rows.fill(np.ascontiguousarray(vectors, dtype=np.float32))
    return rows


def _with_room(array: NDArray[T], more: int) -> NDArray[T]:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
