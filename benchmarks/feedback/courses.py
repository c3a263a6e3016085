"""What is taught, and what is asked before and after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from incdsi.text.encoders import load_encoder
from incdsi_lab.baselines.protocol import Questions, joined
from incdsi_lab.data import read_jsonl
from incdsi_lab.data.location import data_home
from incdsi_lab.embedded import Embedded, embed
from incdsi_lab.experiments.datasets import embedded, read_dataset

MOST_ASKED, MOST_TO_CHOOSE_BY = 1500, 300  # questions of each part, drawn at random where there are more
Places = Iterable[int]


@dataclass(frozen=True, eq=False, kw_only=True)
class Course:
    """Documents of which nothing was asked yet, the lessons in their order, and questions nobody teaches.

    `paraphrases` are of documents that were taught something, `others` of the rest. A way with a parameter chooses it
    by `validation`, which no figure is made of.
    """

    name: str
    data: Embedded
    lessons: Questions
    paraphrases: Questions
    others: Questions
    validation: Questions

    @property
    def contents(self) -> list[str]:
        return [document.content for document in self.data.documents]


def clinc(taught: int, each: int = 5) -> Course:
    """Short names of intents; so many of them are taught, `each` questions a document."""
    data = embed(read_jsonl(data_home() / "clinc150", "clinc150"), load_encoder())
    rng = np.random.default_rng(0)
    chosen = set(np.sort(rng.permutation(len(data.documents))[:taught]).tolist())
    lessons = data.train.take(_drawn(data.train, chosen, each, rng))
    name = f"clinc150, {taught} of {len(data.documents)} intents taught {each} questions each"
    return _course(name, data, chosen, lessons, data.test, rng)


def squad(documents: int, taught: int) -> Course:
    """So many of squad_plus' documents, of which some are taught a question each; theirs are the other questions."""
    data = embedded(read_dataset("squad").sampled(documents, seed=0), load_encoder())
    rng = np.random.default_rng(0)
    able = np.unique(data.train.owners)
    chosen = set(np.sort(rng.permutation(able)[:taught]).tolist())
    places = _drawn(data.train, chosen, 1, rng)
    left = np.setdiff1d(np.arange(len(data.train)), places)
    unasked = joined([data.test, data.train.take(left[np.isin(data.train.owners[left], list(chosen))])])
    name = f"squad_plus, {len(chosen)} of {documents:,} documents taught a question each"
    return _course(name, data, chosen, data.train.take(places), unasked, rng)


def _course(
    name: str, data: Embedded, chosen: set[int], lessons: Questions, asked: Questions, rng: np.random.Generator
) -> Course:
    taught = np.isin(asked.owners, list(chosen))

    def some(questions: Questions, most: int) -> Questions:
        return questions.take(np.sort(rng.permutation(len(questions))[:most]))

    return Course(
        name=name,
        data=data,
        lessons=lessons,
        paraphrases=some(asked.take(np.flatnonzero(taught)), MOST_ASKED),
        others=some(asked.take(np.flatnonzero(~taught)), MOST_ASKED),
        validation=some(data.val, MOST_TO_CHOOSE_BY),
    )


def _drawn(questions: Questions, chosen: Places, each: int, rng: np.random.Generator) -> np.ndarray:
    """The places of so many questions of each of these documents, in an order that mixes documents."""
    own = [rng.permutation(np.flatnonzero(questions.owners == owner))[:each] for owner in sorted(chosen)]
    return rng.permutation(np.concatenate(own))
