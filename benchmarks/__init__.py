"""Opt-in benchmarks: peers and project in the same run, quality beside time, results as JSON."""

import incdsi  # noqa: F401  # before numpy, as its documentation says
