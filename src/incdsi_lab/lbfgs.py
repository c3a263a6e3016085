"""The paper's solver, reproduced faithfully: torch's L-BFGS over all rows.

| here                                | paper and its code                                            |
| ----------------------------------- | ------------------------------------------------------------- |
| `steps` x `inner`, history kept     | "30 iterations": 30 outer steps of up to 20 L-BFGS iterations |
| `tolerance` on the update's norm    | stop when ||v_t - v_{t-1}|| < 1e-3                            |
| learning rate 1, strong Wolfe       | the same                                                      |
| random start, float32, autograd     | the same                                                      |
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from incdsi.hyperparameters import Weights
from incdsi.solver.problem import Array, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class LBFGS:
    """Settings of the paper's solver; `hinge="plain"` is its ablation without the square."""

    hinge: Literal["squared", "plain"] = "squared"
    steps: int = 30
    inner: int = 20
    tolerance: float = 1e-3
    seed: int = 0

    def minimise(self, problem: Problem, weights: Weights) -> tuple[NDArray[np.float64], int]:
        """The vector found, and how often the whole loss was evaluated."""
        loss = _Loss(problem, weights, squared=self.hinge == "squared")
        generator = torch.Generator().manual_seed(self.seed)
        edge = len(problem.anchor) ** -0.5
        v = torch.empty(len(problem.anchor)).uniform_(-edge, edge, generator=generator).requires_grad_()
        optimizer = torch.optim.LBFGS([v], lr=1.0, max_iter=self.inner, line_search_fn="strong_wolfe")

        def closure() -> torch.Tensor:
            optimizer.zero_grad()
            value = loss(v)
            value.backward()  # type: ignore[no-untyped-call]
            return value

        for _ in range(self.steps):
            before = v.detach().clone()
            optimizer.step(closure)  # type: ignore[no-untyped-call]
            if torch.linalg.vector_norm(v.detach() - before) < self.tolerance:
                break
        return v.detach().numpy().astype(np.float64), loss.evaluations


class _Loss:
    def __init__(self, problem: Problem, weights: Weights, *, squared: bool) -> None:
        self.queries, self.floors = _tensor(problem.queries), _tensor(problem.floors)
        self.rows, self.ceilings = _tensor(problem.rows), _tensor(problem.ceilings)
        self.anchor = _tensor(problem.anchor)
        self.weights = weights
        self.squared = squared
        self.evaluations = 0

    def __call__(self, v: torch.Tensor) -> torch.Tensor:
        self.evaluations += 1
        lost = torch.relu(self.floors - self.queries @ v)
        stolen = torch.relu(self.rows @ v - self.ceilings)
        if self.squared:
            lost, stolen = lost**2, stolen**2
        retrieve = self.weights.retrieve / max(len(self.queries), 1)
        pull = ((v - self.anchor) ** 2).sum()
        return retrieve * lost.sum() + (1 - self.weights.retrieve) * stolen.sum() + self.weights.anchor * pull


def _tensor(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
