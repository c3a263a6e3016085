"""Solving beside searching: nobody's answers change, and nobody's threads of linear algebra."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

OVERLAPPING = """
import json, threading
import numpy as np
from threadpoolctl import threadpool_info
from incdsi.hyperparameters import Margins, Weights
from incdsi.rows import LocalRows
from incdsi.solver import Newcomer, solve_many

rng = np.random.default_rng(0)
h, n = 48, 3000
rows = LocalRows(h)
queries = rng.standard_normal((n, 2, h)).astype(np.float32)
rows.append_many(list(8 * queries.mean(axis=1)), list(queries))
newcomers = [
    Newcomer(some, rows.best(some)[0], 5 * some.mean(axis=0))
    for some in (rng.standard_normal((3, h)).astype(np.float32) for _ in range(8))
]

def solve(newcomer):
    ceilings = rows.under(1.0)
    (placed,) = solve_many([newcomer], ceilings, margins=Margins(), weights=Weights(anchor=1e-3))
    return placed.vector.tolist()

def blas():
    return sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})

alone = [solve(newcomer) for newcomer in newcomers]
found = rows.scores(queries[0, 0]).best(10)[1].tolist()
together, searched, counts, errors = {}, [], [], []
done = threading.Event()

def solving(number):
    try:
        together[number] = [solve(newcomer) for newcomer in newcomers]
    except BaseException as error:
        errors.append(repr(error))

def searching():
    while not done.is_set():
        searched.append(rows.scores(queries[0, 0]).best(10)[1].tolist() == found)
        counts.append(blas())

solvers = [threading.Thread(target=solving, args=(number,)) for number in range(3)]
searcher = threading.Thread(target=searching)
searcher.start()
for one in solvers: one.start()
for one in solvers: one.join()
done.set(); searcher.join()
print(json.dumps({
    "same": [together.get(number) == alone for number in range(3)],
    "errors": errors,
    "searches": [len(searched) > 0, all(searched)],
    "threads": sorted({tuple(count) for count in [*counts, blas()]}),
}))
"""


@pytest.mark.parametrize("threads", ["1", "2"])
def test_overlapping_solves_and_searches_leave_answers_and_threads_as_they_are(threads: str) -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": threads}
    child = subprocess.run([sys.executable, "-c", OVERLAPPING], capture_output=True, text=True, env=environment)
    assert child.returncode == 0, child.stderr
    seen = json.loads(child.stdout)
    assert seen["errors"] == []
    assert seen["same"] == [True] * 3
    assert seen["searches"] == [True, True]
    assert seen["threads"] == [[int(threads)]]
