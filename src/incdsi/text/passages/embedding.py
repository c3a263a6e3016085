"""Documents as embedded passages: the one place that splits texts and embeds what comes of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from incdsi.documents import Document
from incdsi.records import Piece, StoredPassage, Vector, passage_text
from incdsi.text.encoders import Encoder, count_tokens, for_documents, tokens_read
from incdsi.text.passages.identity import Splitter
from incdsi.text.passages.splitting import LEAST, Sections, located

logger = logging.getLogger("incdsi")
PORTION = 256  # passages embedded before one says how far it is
SHARE = 0.75  # of what the encoder reads that a passage may have; the rest is for its title and headings


def passages_of(
    documents: Sequence[Document], encoder: Encoder, splitter: Splitter, known: Mapping[str, Vector] | None = None
) -> list[tuple[StoredPassage, ...]]:
    """The passages of each document, none of a short one; what is `known`, by `passage_text`, is not embedded again.

    Long is what the encoder does not read to its end or, by a splitter of one's own, what it takes apart.
    """
    pieces = [_pieces(document.text, encoder, splitter) for document in documents]
    texts = [[passage_text(document, one) for one in some] for document, some in zip(documents, pieces, strict=True)]
    vectors = dict(known or {})
    new = list(dict.fromkeys(text for some in texts for text in some if text not in vectors))
    for start in range(0, len(new), PORTION):
        some = new[start : start + PORTION]
        if len(new) > PORTION:
            logger.info("embedding passages, %s of %s done", f"{start:,}", f"{len(new):,}")
        vectors.update(zip(some, for_documents(encoder).encode(some), strict=True))
    return [
        tuple(StoredPassage(piece=piece, embedding=vectors[text]) for piece, text in zip(some, own, strict=True))
        for some, own in zip(pieces, texts, strict=True)
    ]


def embedded(document: Document, passages: Sequence[StoredPassage]) -> dict[str, Vector]:
    """What a document's passages were embedded as, and the embeddings."""
    return {passage_text(document, one.piece): one.embedding for one in passages}


def centre(passages: Sequence[StoredPassage]) -> Vector:
    """The mean of the passages' embeddings (h,), as long as they are: where a long document is pulled to."""
    rows = np.stack([one.embedding for one in passages]).astype(np.float64)
    mean = rows.mean(axis=0)
    length, theirs = math.sqrt(math.fsum(mean**2)), math.sqrt(math.fsum((rows**2).mean(axis=0)))
    return np.asarray(mean * (theirs / length if length > 0.0 else 1.0), dtype=np.float32)


def _pieces(text: str, encoder: Encoder, splitter: Splitter) -> list[Piece]:
    if splitter == "none":
        return []
    found = _by_sections(text, encoder, splitter) if isinstance(splitter, Sections) else located(text, splitter(text))
    return found if len(found) > 1 else []


def _by_sections(text: str, encoder: Encoder, splitter: Sections) -> list[Piece]:
    most = tokens_read(encoder)
    if len(text) <= most or count_tokens(encoder, [text])[0] <= most:  # no token is shorter than a character
        return []
    fitting = Sections(min(splitter.tokens, max(LEAST, int(SHARE * most))))
    return fitting.pieces(text, partial(count_tokens, encoder))
