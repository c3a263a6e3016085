"""Opt-in benchmarks: peers and project in the same run, quality beside time, results as JSON."""
