"""The index over HTTP: one process, one queue of writes, searches that never wait for them."""
