"""The laboratory: collections, splits, metrics, streams of additions, tuning, reports."""
