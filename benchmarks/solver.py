"""The paper's solver and ours, side by side: `make bench-solver`.

Every figure includes the floor pass (the best rival over all document vectors) and the solve; for
batches also the batch's documents meeting each other. Each case runs in a process of its own, ours
first, so that its peak memory is ours alone. Objectives are evaluated by one function in float64.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine, peak_mb, resident_mb, write
from benchmarks.real import real_data
from incdsi.hyperparameters import BOLD, PAPER, Hyperparameters, Margins, Weights
from incdsi.rows import LocalRows
from incdsi.solver import Newcomer, Placement, Problem, Solution, Status, solve_many
from incdsi_lab.lbfgs import LBFGS

Floats = NDArray[np.float32]
# A document's queries (k, h) and anchor (h,): in float32, of which Newcomer makes float64.
Document = tuple[NDArray[Any], NDArray[Any]]
BATCH = 256
# The paper's form for an encoder of unit length: margins in the scale of its scores.
PAPER_UNIT = Hyperparameters(
    margins=Margins(retrieve=5.0, preserve=7.0), weights=Weights(retrieve=0.5, anchor=6e-5), anchor_scale=0.0
)


@dataclass(frozen=True)
class Case:
    """`kind` of data, `n` documents of dimension `h`, and how many documents each solver places."""

    kind: str
    n: int
    h: int
    ours: int = 12
    peer: int = 3


CASES = [
    *(Case(kind, n, h) for n in (10_000, 100_000) for h in (384, 768) for kind in ("easy", "crowded")),
    Case("twins", 100_000, 768),
    Case("packed", 100_000, 768),
    Case("easy", 300_000, 384, ours=8, peer=2),
    Case("crowded", 300_000, 768, ours=8, peer=2),
    Case("crowded", 1_000_000, 384, ours=6, peer=1),
    Case("squad_plus, paper's form", 0, 0),
    Case("squad_plus, general form", 0, 0),
]
SMALL = [Case("easy", 5_000, 64), Case("crowded", 5_000, 64), Case("packed", 5_000, 64)]

# Queries per cluster, and how far they lie from its centre (as a fraction of the centre's length).
CLUSTERS = {"easy": (1, 0.0), "crowded": (50, 0.7), "twins": (50, 0.7), "packed": (2_000, 0.3)}


def synthetic(case: Case, rng: np.random.Generator) -> tuple[LocalRows, Floats]:
    """Rows like an unnormalised BERT's (about 14 long), own scores near 20; and queries of newcomers."""
    size, spread = CLUSTERS[case.kind]
    count = case.n // size if spread else 1
    centres = rng.standard_normal((max(count, 1), case.h), dtype=np.float32) * (14 / np.sqrt(case.h))
    rows = LocalRows(case.h)
    for start in range(0, case.n, 4096):
        queries = _around(centres, spread, min(4096, case.n - start), rng)
        vectors = queries * (20 / np.einsum("ij,ij->i", queries, queries))[:, None]
        rows.append_many(list(vectors), list(queries[:, None]))
    if case.kind == "twins":  # newcomers a tenth of their length away from a query already indexed
        return rows, queries[:BATCH] + 0.07 * rng.standard_normal((BATCH, case.h), dtype=np.float32)
    return rows, _around(centres, spread, BATCH, rng)


def _around(centres: Floats, spread: float, count: int, rng: np.random.Generator) -> Floats:
    noise: Floats = rng.standard_normal((count, centres.shape[1]), dtype=np.float32) * (14 / np.sqrt(centres.shape[1]))
    if spread == 0.0:
        return noise
    around: Floats = centres[rng.integers(0, len(centres), count)] + spread * noise
    return around


@dataclass
class Setting:
    """An index, the documents to add to it, and how."""

    rows: LocalRows
    newcomers: list[Document]
    how: Hyperparameters


def setting(case: Case) -> Setting:
    if case.kind.startswith("squad_plus"):
        return real_setting(general="general" in case.kind)
    rows, queries = synthetic(case, np.random.default_rng(0))
    return Setting(rows, [(q[None], np.zeros(case.h, dtype=np.float32)) for q in queries], PAPER)


def real_setting(*, general: bool) -> Setting:
    """All but the last documents of squad_plus indexed, with their natural questions and spans."""
    data = real_data()
    questions = data.by_document([data.train, data.spans])
    how = BOLD if general else PAPER_UNIT
    documents = [
        (some if general else some.mean(axis=0, keepdims=True), how.anchor_scale * anchor)
        for some, anchor in zip(questions, data.embeddings, strict=True)
        if len(some)
    ]
    rows = LocalRows(data.encoder.dimension)
    for start in range(0, len(documents) - BATCH, 64):
        batch = documents[start : min(start + 64, len(documents) - BATCH)]
        placements = placed(rows, batch, how, keep_lost=not general)
        kept = [some[p.preserved] for (some, _), p in zip(batch, placements, strict=True)]
        rows.append_many([p.vector for p in placements], kept)
    return Setting(rows, documents[-BATCH:], how)


def placed(rows: LocalRows, documents: list[Document], how: Hyperparameters, *, keep_lost: bool) -> list[Placement]:
    """Constrain and solve, as the index does."""
    best, _ = rows.best(np.concatenate([queries for queries, _ in documents]))
    rivals = np.split(best, np.cumsum([len(queries) for queries, _ in documents])[:-1])
    newcomers = [Newcomer(q, r, a) for (q, a), r in zip(documents, rivals, strict=True)]
    ceilings = rows.under(how.margins.preserve)
    return solve_many(newcomers, ceilings, margins=how.margins, weights=how.weights, keep_lost=keep_lost)


def place(setting: Setting, documents: list[Document]) -> tuple[list[Solution], float, float]:
    """Solutions, and the seconds of the floor pass and of the solve."""
    begin = time.perf_counter()
    flat = np.concatenate([queries for queries, _ in documents])
    best, _ = setting.rows.best(flat)
    between = time.perf_counter()
    ends = np.cumsum([len(queries) for queries, _ in documents])
    rivals = np.split(best, ends[:-1])
    newcomers = [Newcomer(q, r, a) for (q, a), r in zip(documents, rivals, strict=True)]
    how = setting.how
    ceilings = setting.rows.under(how.margins.preserve)
    placements = solve_many(newcomers, ceilings, margins=how.margins, weights=how.weights)
    return [placement.solution for placement in placements], between - begin, time.perf_counter() - between


def problem_of(
    setting: Setting, document: tuple[Floats, Floats], V: Floats, Z: Floats, own: NDArray[np.float64]
) -> Problem:
    queries, anchor = document
    floors = (queries @ V.T).max(axis=1).astype(np.float64) + setting.how.margins.retrieve
    return Problem(queries, floors, Z, own - setting.how.margins.preserve, anchor)


def peer(setting: Setting, documents: list[Document]) -> tuple[list[dict[str, float]], list[Problem]]:
    """What the paper's solver needs for each document: seconds, passes and objective."""
    V, Z, own = contiguous(setting.rows)
    results, problems = [], []
    for number, document in enumerate(documents):
        begin = time.perf_counter()
        (document[0] @ V.T).max(axis=1)
        floor_pass = time.perf_counter() - begin
        problem = problem_of(setting, document, V, Z, own)
        begin = time.perf_counter()
        vector, evaluations = LBFGS(seed=number).minimise(problem, setting.how.weights)
        seconds = time.perf_counter() - begin + floor_pass
        results.append(
            {"seconds": seconds, "passes": 2 * evaluations, "objective": objective(problem, vector, setting)}
        )
        problems.append(problem)
    return results, problems


def contiguous(rows: LocalRows) -> tuple[Floats, Floats, NDArray[np.float64]]:
    """V, Z and own scores as plain arrays, as the paper's solver takes them."""
    everything = rows.under(0.0).nearest(np.zeros((1, rows.dimension)), sys.maxsize)[0]
    return rows.vectors(np.arange(len(rows))), np.asarray(everything.rows), everything.ceilings


def objective(problem: Problem, vector: NDArray[np.float64], setting: Setting) -> float:
    """The objective in float64, a part of the rows at a time."""
    weights = setting.how.weights
    total = 0.0
    for start in range(0, len(problem.rows), 65536):
        part = slice(start, start + 65536)
        over = np.maximum(problem.rows[part].astype(np.float64) @ vector - problem.ceilings[part], 0.0)
        total += float(over @ over)
    lost = np.maximum(problem.floors - problem.queries.astype(np.float64) @ vector, 0.0)
    pull = vector - problem.anchor
    return float(
        weights.retrieve / len(lost) * lost @ lost + (1 - weights.retrieve) * total + weights.anchor * pull @ pull
    )


def run(case: Case) -> dict[str, Any]:
    """One case: ours one by one, ours in a batch, then the paper's solver on the same first documents."""
    if case.kind.startswith("squad_plus"):
        real_data()  # so that encoding does not count as the solver's memory
    before = resident_mb()
    setting_ = setting(case)
    place(setting_, setting_.newcomers[:2])  # threads, caches, the screen's trial
    singles = [place(setting_, [document]) for document in setting_.newcomers[: case.ours]]
    batch, floor_seconds, solve_seconds = place(setting_, setting_.newcomers)
    peak = peak_mb() - before
    n, h, rows = len(setting_.rows), setting_.rows.dimension, len(setting_.rows.under(0.0))
    theirs, problems = peer(setting_, setting_.newcomers[: case.peer])
    ours_at = [objective(p, s[0][0].vector, setting_) for p, s in zip(problems, singles, strict=False)]
    paper_ms = 1e3 * float(np.median([r["seconds"] for r in theirs]))
    single_ms = 1e3 * float(np.median([floor + solve for _, floor, solve in singles]))
    batch_ms = 1e3 * (floor_seconds + solve_seconds) / len(batch)
    first = [s[0] for s, _, _ in singles]
    return {
        **asdict(case),
        "n": n,
        "h": h,
        "preserve_rows": rows,
        "documents": {"single": len(singles), "batch": len(batch), "paper": len(theirs)},
        "active_rows": int(np.median([len(s.stolen) for s in first])),
        "paper_ms": paper_ms,
        "paper_passes": float(np.median([r["passes"] for r in theirs])),
        "single_ms": single_ms,
        "single_floor_ms": 1e3 * float(np.median([floor for _, floor, _ in singles])),
        "single_passes": float(np.mean([s.passes for s in first])),
        "batch_ms": batch_ms,
        "batch_floor_ms": 1e3 * floor_seconds / len(batch),
        "batch_passes": float(np.mean([s.passes for s in batch])),
        "single_ratio": paper_ms / single_ms,
        "batch_ratio": paper_ms / batch_ms,
        "objective_ratio": max(o / r["objective"] for o, r in zip(ours_at, theirs, strict=True)),
        "largest_bound": max((s.bound for s in batch if s.status is not Status.UNFINISHED), default=0.0),
        "unfinished": sum(s.status is Status.UNFINISHED for s in batch),
        "peak_mb": peak,
        "memory_ratio": peak * 1e6 / (4.0 * h * (n + rows)),
    }


def show(result: dict[str, Any]) -> str:
    return (
        f"{result['kind']:<25}{result['n']:>9,}{result['h']:>5}{result['preserve_rows']:>10,}{result['active_rows']:>7}"
        f"{result['paper_ms']:>10.0f}{result['single_ms']:>9.1f}{result['batch_ms']:>8.2f}"
        f"{result['single_ratio']:>8.0f}x{result['batch_ratio']:>7.0f}x"
        f"{result['paper_passes']:>7.0f}{result['single_passes']:>6.1f}{result['batch_passes']:>6.1f}"
        f"{result['objective_ratio']:>11.6f}{result['memory_ratio']:>7.2f}"
    )


HEADER = (
    f"{'data':<25}{'n':>9}{'h':>5}{'rows':>10}{'active':>7}{'paper ms':>10}{'one ms':>9}{'256 ms':>8}"
    f"{'one':>9}{'256':>8}{'passes: p':>10}{'one':>5}{'256':>6}{'obj ratio':>9}{'mem':>7}"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="three small cases, in seconds")
    parser.add_argument("--case", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    cases = SMALL if arguments.small else CASES
    if arguments.case is not None:
        print(json.dumps(run(cases[arguments.case])))
        return
    print(json.dumps(machine()))
    print(HEADER)
    results = []
    for number, case in enumerate(cases):
        flags = ["--small"] if arguments.small else []
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.solver", "--case", str(number), *flags],
            capture_output=True,
            text=True,
            check=False,
        )
        if child.returncode:
            print(f"{case.kind:<25} skipped: {child.stderr.strip().splitlines()[-1]}")
            continue
        results.append(json.loads(child.stdout.splitlines()[-1]))
        print(show(results[-1]), flush=True)
    if not arguments.small:
        print("written to", write("solver", {"cases": results}))


if __name__ == "__main__":
    main()
