"""incdsi as a retriever of Haystack."""

from haystack_integrations.components.retrievers.incdsi.retriever import IncDSIRetriever

__all__ = ["IncDSIRetriever"]
