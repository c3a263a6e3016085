"""incdsi as a retriever of LlamaIndex."""

from llama_index.retrievers.incdsi.retriever import IncDSIRetriever

__all__ = ["IncDSIRetriever"]
