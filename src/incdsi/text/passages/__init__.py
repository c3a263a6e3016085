"""Long texts in passages, each with the headings it is under."""

from incdsi.text.passages.embedding import centre, embedded, passages_of
from incdsi.text.passages.identity import Splitter
from incdsi.text.passages.splitting import Sections

__all__ = ["Sections", "Splitter", "centre", "embedded", "passages_of"]
