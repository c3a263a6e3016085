"""Files to documents and queries: JSONL, tables, folders of text, BEIR; every refusal names file and line."""

from incdsi.readers.clicks import read_asked, read_clicks
from incdsi.readers.documents import read_documents
from incdsi.readers.fields import Layout
from incdsi.readers.queries import group_queries, read_queries
from incdsi.readers.rows import OnError

__all__ = ["Layout", "OnError", "group_queries", "read_asked", "read_clicks", "read_documents", "read_queries"]
