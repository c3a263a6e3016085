"""The names others call; a change here is a change for them."""

from __future__ import annotations

import incdsi
import incdsi.solver


def test_the_package_exports_exactly_these_names():
    assert sorted(incdsi.__all__) == [
        "Addition",
        "AsyncIndex",
        "Click",
        "Document",
        "Hit",
        "Hyperparameters",
        "IncDSIError",
        "Index",
        "Learned",
        "Margins",
        "Passage",
        "Query",
        "SearchIndex",
        "Snippet",
        "Taught",
        "Weights",
    ]
    assert all(hasattr(incdsi, name) for name in incdsi.__all__)


def test_the_solver_exports_exactly_these_names():
    assert sorted(incdsi.solver.__all__) == [
        "Certificate",
        "Insistence",
        "Newcomer",
        "Placement",
        "Problem",
        "Solution",
        "Status",
        "Violations",
        "certify",
        "insist",
        "solve",
        "solve_many",
    ]
    assert all(hasattr(incdsi.solver, name) for name in incdsi.solver.__all__)
