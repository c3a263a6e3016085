"""Embeddings of documents and of their queries: sentences of a text can be told by the text's own pass."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from incdsi.text.encoders import Encoder, for_documents

Floats = NDArray[np.float32]


def embed(
    encoder: Encoder, contents: Sequence[str], queries: Sequence[Sequence[str]], inside: Sequence[Iterable[str]] = ()
) -> tuple[Floats, list[list[Floats]]]:
    """The embeddings (n, h) of contents, and of each one's queries.

    Those of `inside`, which are parts of the contents word for word, need no pass of their own where the encoder tells
    its token states: such an embedding is the mean of the states that the content's pass gives the query's words.
    """
    documents = for_documents(encoder)
    if inside and documents is encoder and getattr(encoder, "has_states", False):
        anchors, known = _with_parts(encoder, contents, inside)
        others = [[text for text in some if text not in parts] for some, parts in zip(queries, known, strict=True)]
        vectors = iter(encoder.encode(_flat(others)))
        own = [{**parts, **dict(zip(some, vectors))} for some, parts in zip(others, known, strict=True)]  # noqa: B905
        return anchors, [[found[text] for text in some] for some, found in zip(queries, own, strict=True)]
    if documents is encoder:  # all at once, so that they can share the cores
        both = encoder.encode([*contents, *_flat(queries)])
        anchors, vectors = both[: len(contents)], iter(both[len(contents) :])
    else:
        anchors, vectors = documents.encode(contents), iter(encoder.encode(_flat(queries)))
    return anchors, [[next(vectors) for _ in some] for some in queries]


def _flat(texts: Iterable[Iterable[str]]) -> list[str]:
    return [text for some in texts for text in some]


def _with_parts(
    encoder: Encoder, contents: Sequence[str], inside: Sequence[Iterable[str]]
) -> tuple[Floats, list[dict[str, Floats]]]:
    places = [places_of(content, texts) for content, texts in zip(contents, inside, strict=True)]
    anchors, found = encoder.encode_with_parts(contents, [list(some.values()) for some in places])  # type: ignore[attr-defined]
    return anchors, [
        {text: vector for text, vector in zip(some, vectors, strict=True) if vector is not None}
        for some, vectors in zip(places, found, strict=True)
    ]


def places_of(content: str, texts: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Where those of these texts that stand in the content first begin and end, however their words are spaced."""
    words = content.split()
    flat, starts, flat_starts, position, length = " ".join(words), [], [], 0, 0
    for word in words:
        position = content.index(word, position)
        starts.append(position)
        flat_starts.append(length)
        position += len(word)
        length += len(word) + 1

    def place(at: int) -> int:
        word = bisect_right(flat_starts, at) - 1
        return starts[word] + at - flat_starts[word]

    found = {}
    for text in texts:
        part = " ".join(text.split())
        at = flat.find(part)
        end = at + len(part)
        if part and at >= 0 and not (_is_word(flat[at - 1 : at]) or _is_word(flat[end : end + 1])):
            found[text] = (place(at), place(end - 1) + 1)
    return found


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"
