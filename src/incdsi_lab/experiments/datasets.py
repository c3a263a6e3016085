"""The collections a study can be run on, by name or folder, each with its split and its size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi.readers import irds
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator
from incdsi_lab.collection import Collection
from incdsi_lab.data import (
    read_beir,
    read_irds,
    read_jsonl,
    read_msmarco,
    read_natural_questions,
    read_released,
)
from incdsi_lab.data.location import BESIDE, data_home
from incdsi_lab.embedded import Embedded, embed, embedded_before
from incdsi_lab.experiments.settings import PRESETS, SQUAD, StudySettings
from incdsi_lab.splits import Split, split

FOLDERS = {"squad": "squad_plus", "nq-passages": "nq_passages", "nq320k": "nq320k", "msmarco": "msmarco"}
RELEASED = "old_docs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A collection, the split it came with, and a generator of the queries it came with, if any.

    `whole` is what it was drawn from.
    """

    collection: Collection
    own_split: Split | None = None
    generator: Generator | None = None
    whole: Collection | None = None

    def sampled(self, documents: int, seed: int) -> Dataset:
        """A random draw of its documents with their queries (0: all); they are split anew."""
        if not 0 < documents < len(self.collection.documents):
            return self
        drawn = draw(self.collection, documents, seed)
        return Dataset(collection=drawn, generator=self.generator, whole=self.collection)

    def split(self, seed: int) -> Split:
        """Its own split, or one by the seed."""
        return self.own_split or split(self.collection, seed)


def read_dataset(name: str, data: Path | None = None) -> Dataset:
    """The collection of that name, or in that folder: ours, BEIR's, the authors' or Natural Questions' layout.

    `irds:beir/scifact` is one of ir_datasets.

    A named one is looked for in `data`, in the folder that INCDSI_DATA names, and in ../shared/data; MS MARCO comes
    through ir-datasets when it is in none of them.
    """
    if irds.is_irds(name):
        return Dataset(collection=read_irds(name))
    folder = _folder(name, data)
    if folder is None and name == "msmarco":
        return Dataset(collection=read_msmarco())
    if folder is None:
        raise InvalidInput(
            f"cannot find {name!r}; name one of {', '.join(FOLDERS)}, irds:NAME or a folder, "
            "and say where the collections are with --data FOLDER"
        )
    called = FOLDERS.get(name, folder.resolve().name)
    if (folder / RELEASED).is_dir():
        released = read_released(folder, called)
        return Dataset(collection=released.collection, own_split=released.split, generator=Given(released.generated))
    return Dataset(collection=_reader(folder)(folder, called))


def settings_for(name: str) -> StudySettings:
    """The size that suits a dataset."""
    return PRESETS.get(name, SQUAD)


def draw(collection: Collection, documents: int, seed: int) -> Collection:
    """A random draw of documents from the collection, with their queries."""
    drawn = np.random.default_rng([seed, documents]).choice(len(collection.documents), size=documents, replace=False)
    chosen = [collection.documents[place] for place in np.sort(drawn)]
    kept = {document.id for document in chosen}
    queries = [query for query in collection.queries if query.document_id in kept]
    return Collection(name=collection.name, documents=chosen, queries=queries)


def embedded(
    dataset: Dataset,
    encoder: Encoder,
    progress: Progress | None = None,
    cache: Path | None = None,
    *,
    draws: int = 1,
    wholes: dict[str, Embedded] | None = None,
) -> Embedded:
    """The dataset with all its embeddings, from the user's cache where possible.

    What it was drawn from is embedded instead where that is less work: it was before, or `draws` of it are wanted.
    `wholes` keeps it by its digest for the next draw.
    """
    collection, whole = dataset.collection, dataset.whole
    if whole is None or not (
        draws * len(collection.documents) >= len(whole.documents) or embedded_before(whole, encoder, cache)
    ):
        return embed(collection, encoder, cache=cache, generator=dataset.generator, progress=progress)
    kept = {} if wholes is None else wholes
    if whole.digest not in kept:
        kept[whole.digest] = embed(whole, encoder, cache=cache, generator=dataset.generator, progress=progress)
    return embed(collection, encoder, cache=cache, generator=dataset.generator, whole=kept[whole.digest])


def require_texts(dataset: Dataset) -> None:
    """InvalidInput for a collection without any text."""
    if not any(document.content for document in dataset.collection.documents):
        raise InvalidInput(
            f"no document of {dataset.collection.name} has a text, and a study needs them for anchors, BM25, dense "
            "search and DPR; give its rows a `doc_text`"
        )


class Given:
    """Hands out queries that were generated elsewhere."""

    def __init__(self, queries: dict[str, list[str]]) -> None:
        self._queries = queries

    def __call__(self, document: Document, /) -> list[str]:
        return self._queries.get(document.id, [])


def _folder(name: str, data: Path | None) -> Path | None:
    if name not in FOLDERS:
        return Path(name) if Path(name).is_dir() else None
    roots = [data] if data is not None else [data_home(), BESIDE]
    places = [place for root in roots for place in (root / FOLDERS[name], root)]
    return next((place for place in places if _holds_data(place)), None)


def _holds_data(folder: Path) -> bool:
    marks = ("docs.jsonl*", "corpus.jsonl*", RELEASED, "*train*.jsonl*")
    return any(True for mark in marks for _ in folder.glob(mark))


def _reader(folder: Path) -> Callable[[Path, str], Collection]:
    if any(folder.glob("docs.jsonl*")):
        return read_jsonl
    if any(folder.glob("corpus.jsonl*")):
        return read_beir
    return read_natural_questions
