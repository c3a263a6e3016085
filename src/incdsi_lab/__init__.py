"""The laboratory: collections, splits, metrics, baselines, streams of additions, tuning, the study and its report."""
