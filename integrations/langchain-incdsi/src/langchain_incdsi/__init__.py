"""incdsi in LangChain: a vector store, a retriever and a tool that teaches."""

from langchain_incdsi.retriever import IncDSIRetriever
from langchain_incdsi.teaching import teach_tool
from langchain_incdsi.vector_store import IncDSIVectorStore

__all__ = ["IncDSIRetriever", "IncDSIVectorStore", "teach_tool"]
