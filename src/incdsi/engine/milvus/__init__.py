"""The engine on a Milvus server: documents, vectors and preserve rows there, words and a map of rows here."""

from incdsi.engine.milvus.engine import MilvusEngine

__all__ = ["MilvusEngine"]
