"""Where documents live: what an index asks of it (`protocol`), and the engine in a folder (`local`)."""
