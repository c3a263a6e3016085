"""Arrays in, a new document's vector out; no ids, no text, no disk."""

from incdsi.solver.active_set import Newcomer, Placement, solve, solve_many
from incdsi.solver.feasibility import Certificate, Insistence, certify, insist
from incdsi.solver.problem import Problem
from incdsi.solver.solution import Solution, Status, Violations

__all__ = [
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
