"""A minute of mixed load on the server, beside the same load on a plain faiss server: `make bench-server`.

The load comes from a process of its own over 16 connections: 90 % searches (test questions of squad_plus), 8 %
additions (passages of nq_passages, embedded live by both), 2 % deletions of what was added. Ours is filled by
embeddings made before, does not tune itself, and is on the disk before it answers; afterwards it is killed,
started again, and every acknowledged write is looked for. The peer is FastAPI, sentence-transformers and a flat
faiss index in memory: nothing of it survives.
"""
