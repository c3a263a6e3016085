"""A small collection whose questions a tiny real encoder can answer, and a study of it that takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from incdsi.documents import Document
from incdsi_lab.collection import Collection, Judged
from incdsi_lab.embedded import embed
from incdsi_lab.experiments.settings import StudySettings
from incdsi_lab.experiments.study import Study
from incdsi_lab.splits import split
from tests.training.training_problems import WORDS

if TYPE_CHECKING:
    from incdsi.text.encoders.torch_encoder import TorchEncoder

TINY = StudySettings(
    additions=(2,),
    orders=2,
    trials=3,
    frozen_epochs=1,
    further_epochs=1,
    dpr_queries=32,
    scratch_epochs=1,
    scratch_queries=32,
    slow_documents=8,
    hinge_documents=3,
    query_counts=(1,),
    betas=(1.0, 5.0),
    marks=(0.5, 0.8, 1.0),
)
PARTS = ("train", "train", "val", "test")


def collection(documents: int = 60, seed: int = 0) -> Collection:
    """Documents of two sentences, with two queries to train on, one to choose by, one to test with."""
    draw = np.random.default_rng(seed)
    bags = [draw.choice(WORDS, size=10, replace=False) for _ in range(documents)]
    texts = [f"{' '.join(bag[:5]).capitalize()}. {' '.join(bag[5:]).capitalize()}." for bag in bags]
    queries = [
        Judged(
            id=f"q{place}-{number}",
            text=" ".join(draw.choice(bag, size=4, replace=False)),
            document_id=f"d{place}",
            split=part,  # type: ignore[arg-type]
        )
        for place, bag in enumerate(bags)
        for number, part in enumerate(PARTS)
    ]
    return Collection(
        name="tiny",
        documents=[Document(id=f"d{place}", text=text) for place, text in enumerate(texts)],
        queries=queries,
    )


def study(encoder: TorchEncoder, folder: Path, settings: StudySettings = TINY) -> Study:
    whole = collection()
    data = embed(whole, encoder, cache=folder / "cache")
    return Study(data, split(whole, settings.seed, (0.7, 0.2, 0.1)), settings, folder / "out")
