"""BM25 over the same documents, in memory, editable: words, postings, index."""

from incdsi.lexical.index import LexicalIndex
from incdsi.lexical.words import tokenize

__all__ = ["LexicalIndex", "tokenize"]
