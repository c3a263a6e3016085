"""Adds and searches of an index beside faiss and Chroma, its size, and how well it finds: `make bench-index`.

Every part runs in a process of its own, and what an index costs to open and hold is measured in a process
that does nothing else. Filling an index takes embeddings made before (benchmarks.real); every timed add and
every timed search encodes its texts, by OnnxEncoder for ours and by sentence-transformers for the peers.
Synthetic indexes have a toy encoder, whose time is left out of every figure.
"""
