"""Documents of one library as documents of the other."""

from __future__ import annotations

from langchain_core.documents import Document

import incdsi
from incdsi.adapter import packed, unpacked


def to_incdsi(document: Document, id: str) -> incdsi.Document:
    return packed(id, document.page_content, document.metadata)


def to_langchain(document: incdsi.Document) -> Document:
    metadata, _ = unpacked(document)
    return Document(id=document.id, page_content=document.text, metadata=metadata)
