"""Where documents live: what an index asks (`protocol`), in a folder (`local`), on a Milvus server (`milvus`)."""
