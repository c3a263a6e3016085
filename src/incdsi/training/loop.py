"""The training loop of stage 1: batches by seed, best epoch, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from incdsi.info import Quality
from incdsi.training.checkpoints import Checkpoint, Checkpoints, under
from incdsi.training.interrupts import Interrupts
from incdsi.training.records import Epoch, Moment, Observe
from incdsi.training.settings import Settings

STATE = "state."
BEST = "best."


class Learner(Protocol):
    """What the loop drives: parameters that can take steps and be measured, saved and restored."""

    @property
    def writes(self) -> bool:
        """Whether this process writes the checkpoints."""

    def step(self, batch: NDArray[np.int64], number: int, rate: float) -> float:
        """Update on these queries with learning rates times `rate`; the batch's mean loss."""

    def measure(self) -> Quality | None:
        """Quality on the held-out queries; None if there are none."""

    def result(self) -> dict[str, Tensor]:
        """The parameters worth keeping."""

    def state(self) -> dict[str, Tensor]:
        """All tensors that change from step to step."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """The inverse of `state`."""

    def anywhere(self, flag: bool) -> bool:
        """Whether the flag is set in any process; a barrier."""


@dataclass(slots=True, kw_only=True)
class Course:
    """The counters of the loop."""

    step: int = 0
    loss: float = 0.0  # summed over the queries of the current epoch so far
    best_epoch: int = 0
    epochs: list[Epoch] = field(default_factory=list)
    best: dict[str, Tensor] = field(default_factory=dict)

    @property
    def stale(self) -> int:
        """Epochs since the best one."""
        return self.epochs[-1].number - self.best_epoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The best epoch's parameters and the whole curve."""

    parameters: dict[str, Tensor]
    best_epoch: int
    epochs: tuple[Epoch, ...]


def run(
    learner: Learner,
    queries: int,
    settings: Settings,
    *,
    checkpoints: Checkpoints | None = None,
    observe: Observe | None = None,
) -> Outcome:
    """Train to the end, resuming from the newest checkpoint if there is one; the outcome is the same to the bit.

    After Ctrl-C, raises KeyboardInterrupt with a message once the last finished step is in a checkpoint.
    """
    loop = _Loop(learner, queries, settings, checkpoints, observe)
    with Interrupts() as interrupts:
        loop.begin()
        while not loop.finished:
            loop.advance(interrupts)
    loop.write()
    course = loop.course
    return Outcome(parameters=course.best, best_epoch=course.best_epoch, epochs=tuple(course.epochs))


class _Loop:
    def __init__(
        self,
        learner: Learner,
        queries: int,
        settings: Settings,
        checkpoints: Checkpoints | None,
        observe: Observe | None,
    ) -> None:
        self.learner, self.queries, self.settings = learner, queries, settings
        self.checkpoints, self.observe = checkpoints, observe
        self.course = Course()
        self.per_epoch = -(-queries // settings.batch_size)
        self.total = self.per_epoch * settings.epochs
        self.written_at = time.monotonic()
        self._order: tuple[int, NDArray[np.int64]] | None = None

    @property
    def finished(self) -> bool:
        between = self.course.step % self.per_epoch == 0 if self.per_epoch else True
        return between and (self.course.step >= self.total or self.course.stale >= self.settings.patience)

    def begin(self) -> None:
        found = self.checkpoints.read() if self.checkpoints else None
        self.learner.anywhere(False)  # no process may write before all have read
        if self.checkpoints and self.learner.writes:
            self.checkpoints.clear_unfinished()
        if found is None:
            self._end_epoch(Epoch(number=0, loss=None, quality=self.learner.measure()))
        else:
            self._resume(found)

    def advance(self, interrupts: Interrupts) -> None:
        """Take one step, then do whatever is due."""
        course = self.course
        batch = self._batch(course.step)
        rate = 1.0 - course.step / self.total if self.settings.decay else 1.0
        loss = self.learner.step(batch, course.step, rate)
        course.step += 1
        course.loss += loss * len(batch)
        ended = self._close_epoch() if course.step % self.per_epoch == 0 else None
        self._tell(Moment(step=course.step, total=self.total, loss=loss, ended=ended), interrupts)
        if self.learner.anywhere(interrupts.pending):
            self._stop()
        if time.monotonic() - self.written_at >= self.settings.checkpoint_seconds:
            self.write()

    def write(self) -> None:
        if self.checkpoints is None or not self.learner.writes:
            return
        course = self.course
        tensors = {STATE + name: tensor for name, tensor in self.learner.state().items()}
        tensors |= {BEST + name: tensor for name, tensor in course.best.items()}
        epochs = [asdict(epoch) for epoch in course.epochs]
        state = {"loss": course.loss, "best_epoch": course.best_epoch, "epochs": epochs}
        self.checkpoints.write(Checkpoint(step=course.step, tensors=tensors, state=state))
        self.written_at = time.monotonic()

    def _resume(self, found: Checkpoint) -> None:
        self.learner.restore(under(STATE, found.tensors))
        self.course = Course(
            step=found.step,
            loss=found.state["loss"],
            best_epoch=found.state["best_epoch"],
            epochs=[Epoch.from_json(fields) for fields in found.state["epochs"]],
            best=under(BEST, found.tensors),
        )

    def _batch(self, step: int) -> NDArray[np.int64]:
        epoch, place = divmod(step, self.per_epoch)
        if self._order is None or self._order[0] != epoch:
            order = np.random.default_rng([self.settings.seed, epoch]).permutation(self.queries)
            self._order = (epoch, order)
        first = place * self.settings.batch_size
        return self._order[1][first : first + self.settings.batch_size]

    def _close_epoch(self) -> Epoch:
        number = self.course.step // self.per_epoch
        loss, self.course.loss = self.course.loss / self.queries, 0.0
        epoch = Epoch(number=number, loss=loss, quality=self.learner.measure())
        self._end_epoch(epoch)
        return epoch

    def _end_epoch(self, epoch: Epoch) -> None:
        """Keep this epoch's parameters if it is the best so far; without held-out queries, the last one is."""
        course = self.course
        course.epochs.append(epoch)
        best = course.epochs[course.best_epoch].quality
        if epoch.number == 0 or best is None or epoch.quality is None or epoch.quality.mrr_at_10 > best.mrr_at_10:
            course.best_epoch = epoch.number
            course.best = {name: tensor.detach().clone() for name, tensor in self.learner.result().items()}

    def _tell(self, moment: Moment, interrupts: Interrupts) -> None:
        if self.observe is None:
            return
        try:
            self.observe(moment)
        except KeyboardInterrupt:
            interrupts.pending = True

    def _stop(self) -> None:
        self.write()
        kept = (
            f"the state is in {self.checkpoints.folder}: train again with the same input and this checkpoint "
            "folder to resume"
            if self.checkpoints
            else "nothing was kept: there is no checkpoint folder"
        )
        raise KeyboardInterrupt(f"training stopped after step {self.course.step} of {self.total}; {kept}")
