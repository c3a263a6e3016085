"""A small corpus that words can solve, embedded by a tiny real encoder."""

from __future__ import annotations

import numpy as np

from incdsi.documents import Document
from incdsi.text.encoders import Encoder
from incdsi_lab.baselines.protocol import Part, Questions

WORDS = [f"{first}{second}" for first in ("ka", "lo", "mi", "nu", "pe", "ra") for second in "bdfgklmnst"]


def questions(encoder: Encoder, texts: list[str], owners: list[int], *, generated: bool = False) -> Questions:
    return Questions(
        texts=tuple(texts),
        owners=np.array(owners, dtype=np.int64),
        embeddings=encoder.encode(texts),
        generated=np.full(len(texts), generated),
    )


def part(encoder: Encoder, count: int = 12, seed: int = 0) -> Part:
    """Documents of eight words; queries of three of them: three to learn from (one generated), one to choose by."""
    draw = np.random.default_rng(seed)
    bags = [list(draw.choice(WORDS, size=8, replace=False)) for _ in range(count)]
    documents = tuple(Document(id=f"{seed}-{place}", text=" ".join(bag)) for place, bag in enumerate(bags))

    def asked(each: int) -> tuple[list[str], list[int]]:
        owners = [place for place in range(count) for _ in range(each)]
        return [" ".join(draw.choice(bags[place], size=3, replace=False)) for place in owners], owners

    texts, owners = asked(3)
    learn = questions(encoder, texts, owners)
    marked = Questions(
        texts=learn.texts,
        owners=learn.owners,
        embeddings=learn.embeddings,
        generated=np.arange(len(learn)) % 3 == 2,
    )
    return Part(
        documents=documents,
        embeddings=encoder.encode([document.content for document in documents]),
        queries=marked,
        held_out=questions(encoder, *asked(1)),
    )
