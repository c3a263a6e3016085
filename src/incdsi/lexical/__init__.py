"""BM25 over the same documents, in memory, editable: words, language, postings, index."""

from incdsi.lexical.index import LexicalIndex
from incdsi.lexical.language import LANGUAGES, require_language, stemmer_of, tokenize

__all__ = ["LANGUAGES", "LexicalIndex", "require_language", "stemmer_of", "tokenize"]
