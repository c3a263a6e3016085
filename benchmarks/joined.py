"""Long documents with the questions they answer: squad_plus passages of one title, joined."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from incdsi import Document
from incdsi_lab.collection import Collection

LEAST_WORDS = 2000  # of a long document
LEAST_PARTS = 3  # documents of one title
Ranks = NDArray[np.intp]
Told = dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False)
class Asked:
    """Documents, and questions with the place of the document that each should find."""

    documents: Sequence[Document]
    questions: Sequence[str]
    right: NDArray[np.intp]
    long: int  # the first so many documents are long, the others short

    @property
    def long_alone(self) -> Asked:
        """The same without short documents and their questions."""
        of_long = np.flatnonzero(self.right < self.long)
        questions = [self.questions[place] for place in of_long.tolist()]
        return Asked(self.documents[: self.long], questions, self.right[of_long], self.long)

    def ranks(self, scores: NDArray[np.float64]) -> Ranks:
        """By scores (questions, documents); a tie counts against the right document."""
        own = scores[np.arange(len(scores)), self.right][:, None]
        ranks: Ranks = np.count_nonzero(scores >= own, axis=1)
        return ranks

    def told(self, ranks: Ranks, before: Ranks | None = None) -> Told:
        """H@1 and H@10 of the questions to long documents and to short ones, and what is gained over others' ranks."""
        of_long = self.right < self.long
        parts = {"long": of_long, "short": ~of_long}
        return {
            name: _told(ranks[some], None if before is None else before[some])
            for name, some in parts.items()
            if np.any(some)
        }

    def facts(self) -> dict[str, int]:
        words = sum(len(one.text.split()) for one in self.documents[: self.long])
        return {"long": self.long, "words_of_long": words, "short": len(self.documents) - self.long}


def _told(ranks: Ranks, before: Ranks | None) -> dict[str, float]:
    first = ranks == 1
    share = float(np.mean(first))
    error = 100 * float(np.sqrt(share * (1 - share) / len(ranks)))
    told = {"n": len(ranks), "h1": 100 * share, "standard_error": error, "h10": 100 * float(np.mean(ranks <= 10))}
    if before is not None:
        gains = 100.0 * (first.astype(float) - (before == 1))
        told |= {"gain": float(gains.mean()), "gain_error": float(gains.std() / np.sqrt(len(gains)))}
    return told


def joined(collection: Collection, long: int, short: int, split: str, seed: int) -> Asked:
    """About so many long documents and so many short ones, of other titles, with the questions of one part.

    Titles that make several long documents are drawn, so that documents of one title compete.
    """
    titles: dict[tuple[str, str], list[Document]] = {}
    for one in collection.documents:
        titles.setdefault((one.id.split("-")[0], one.title), []).append(one)
    parted = {key: list(_parts(passages)) for key, passages in titles.items() if key[1]}
    several = [key for key, parts in parted.items() if len(parts) >= LEAST_PARTS]
    chance, documents, owners = np.random.default_rng(seed), list[Document](), dict[str, int]()
    for key in (several[place] for place in chance.permutation(len(several))):
        if len(documents) >= long:
            break
        del titles[key]
        for number, part in enumerate(parted[key], start=1):
            owners.update((one.id, len(documents)) for one in part)
            text = "\n\n".join(one.text for one in part)
            documents.append(Document(id=f"{key[1]} {number}", title=key[1], text=text))
    made, others = len(documents), [one for passages in titles.values() for one in passages]
    for place in chance.permutation(len(others))[:short].tolist():
        owners[others[place].id] = len(documents)
        documents.append(others[place])
    judged = [one for one in collection.queries if one.split == split and one.document_id in owners]
    right = np.array([owners[one.document_id] for one in judged], dtype=np.intp)
    return Asked(documents, [one.text for one in judged], right, made)


def _parts(passages: Sequence[Document]) -> Iterator[list[Document]]:
    """Passages in order, LEAST_WORDS words or more at a time; what is left over at the end is left out."""
    part: list[Document] = []
    for one in passages:
        part.append(one)
        if sum(len(some.text.split()) for some in part) >= LEAST_WORDS:
            yield part
            part = []
