"""Documents of one library as documents of the other."""

from __future__ import annotations

from haystack import Document

import incdsi
from incdsi.adapter import packed, unpacked

BESIDE = ("blob", "score", "embedding", "sparse_embedding")  # kept and given back; incdsi makes no use of them


def to_incdsi(document: Document) -> incdsi.Document:
    fields = document.to_dict(flatten=False)
    kept = {name: fields[name] for name in BESIDE if fields[name] is not None}
    if document.content is None:
        kept["content"] = None
    return packed(document.id, document.content or "", document.meta, kept)


def to_haystack(document: incdsi.Document) -> Document:
    meta, kept = unpacked(document)
    return Document.from_dict({"id": document.id, "content": document.text, "meta": meta, **kept})
