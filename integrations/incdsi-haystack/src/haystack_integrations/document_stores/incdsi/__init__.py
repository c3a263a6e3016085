"""incdsi as a document store of Haystack."""

from haystack_integrations.document_stores.incdsi.document_store import IncDSIDocumentStore

__all__ = ["IncDSIDocumentStore"]
