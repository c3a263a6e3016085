"""A study: one collection, one split, one folder of finished pieces, and what all experiments share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.settings import Method
from incdsi.errors import InvalidFile
from incdsi.progress import Progress
from incdsi.training.settings import FrozenSettings, Start
from incdsi.trec import write_lines
from incdsi_lab import embedded as kept
from incdsi_lab.baselines.classification import trained
from incdsi_lab.baselines.protocol import Floats, Part, Questions, Ranked, joined, moved_to
from incdsi_lab.collection import Collection
from incdsi_lab.embedded import Embedded
from incdsi_lab.experiments.incremental import newcomers
from incdsi_lab.experiments.judging import DEPTH
from incdsi_lab.experiments.settings import StudySettings
from incdsi_lab.experiments.tasks import Piece, Pieces, Task
from incdsi_lab.metrics import Scores, score
from incdsi_lab.ranking import run_of
from incdsi_lab.runs import qrels_lines, run_lines, spaceless
from incdsi_lab.splits import Split
from incdsi_lab.streams import State

Places = NDArray[np.intp]


UNKNOWN = ("generated", "encoder")  # before everything is embedded


def facts(collection: Collection, split: Split, settings: StudySettings) -> dict[str, Any]:
    """What a study's figures depend on, as far as it is known before anything is embedded."""
    return {
        "dataset": collection.name,
        "collection": collection.digest,
        "incdsi": metadata.version("incdsi"),
        **asdict(settings),
        "split_seed": split.seed,
    }


class Study:
    """What experiments run on; arrays are created on first use.

    Positions count the initial documents first, then the new ones in the split's order.
    """

    def __init__(self, data: Embedded, split: Split, settings: StudySettings, out: Path | str) -> None:
        self.data, self.split, self.settings = data, split, settings
        about = facts(data.collection, split, settings)
        embedded = {"generated": kept.digest(data.spans.texts), "encoder": data.encoder.fingerprint}
        self.pieces = Pieces(out, about | embedded)
        self._keep_split(self.pieces.folder / "split")
        self._write_qrels()

    def _keep_split(self, folder: Path) -> None:
        """Written once; InvalidFile when it was changed since."""
        if not folder.exists():
            self.split.write(folder)
        elif Split.read(folder, self.data.collection) != self.split:
            raise InvalidFile("this is not the split of this study; restore it or delete it", path=folder)

    # Documents and queries

    @cached_property
    def initial(self) -> Part:
        return self.part(self.data.places(self.split.initial))

    @cached_property
    def new(self) -> Part:
        return self.part(self.data.places(self.split.new))

    @cached_property
    def everything(self) -> Places:
        """All documents in the random order of the long stream."""
        draw = np.random.default_rng([self.settings.seed, 77])
        return draw.permutation(len(self.data.documents))

    @property
    def additions(self) -> tuple[int, ...]:
        """The numbers of new documents the main table stops at; the last is all of them."""
        most = len(self.split.new)
        return (*(count for count in self.settings.additions if count < most), most)

    def part(self, places: Places) -> Part:
        """The documents in these places with all their queries to learn from and to choose by."""
        return Part(
            documents=tuple(self.data.documents[place] for place in places),
            embeddings=self.data.embeddings[places],
            queries=self._owned(self._learn, places),
            held_out=self._owned(self._choose, places),
        )

    def asked(self, places: Places, *, validation: bool = False) -> Questions:
        """The test (or validation) queries of the documents in these places; owners are positions among them."""
        return self._owned(self._choose if validation else self._test, places)

    def groups(self, added: int, *, validation: bool = False, order: Places | None = None) -> dict[str, Questions]:
        """Queries of the initial documents (old) and of the first `added` new ones, in this order of them."""
        new = self.data.places(self.split.new)
        new = new[order] if order is not None else new
        fresh = self.asked(new[:added], validation=validation)
        return {"old": self._old(validation), "new": fresh.moved(len(self.initial))}

    def _old(self, validation: bool) -> Questions:
        return self.initial.held_out if validation else self._old_test

    @cached_property
    def _old_test(self) -> Questions:
        return self.asked(self.data.places(self.split.initial))

    @cached_property
    def _learn(self) -> Questions:
        return joined([self.data.asked(self.split.train), self.data.spans])

    @cached_property
    def _choose(self) -> Questions:
        return self.data.asked(self.split.val)

    @cached_property
    def _test(self) -> Questions:
        return self.data.asked(self.split.test)

    def _owned(self, questions: Questions, places: Places) -> Questions:
        return questions.among(moved_to(places, len(self.data.documents)))

    # TREC's files

    def write_run(self, method: str, found: Mapping[str, Ranked], groups: Mapping[str, Questions]) -> dict[str, Scores]:
        """What a method found for the test queries of all old and new documents, DEPTH documents a query.

        Judged by ir-measures, old and new apart.
        """
        documents = [spaceless(id) for id in (*self.split.initial, *self.split.new)]
        tag = method.replace(" ", "-")
        folder = self.pieces.folder / "runs"
        folder.mkdir(exist_ok=True)
        runs = {
            name: run_of(
                ranked.positions, ranked.scores, groups[name].owners, list(self._qrels[name]), documents, DEPTH
            )
            for name, ranked in found.items()
        }
        write_lines(folder / f"{tag}.run", (line for run in runs.values() for line in run_lines(run, tag)))
        return {name: score(run, self._qrels[name]) for name, run in runs.items()}

    @cached_property
    def _qrels(self) -> dict[str, dict[str, dict[str, int]]]:
        """The test queries of old and of new documents, in the order of `groups`, with the one that is right."""
        owner = {query.id: query.document_id for query in self.data.collection.queries}
        return {
            name: {spaceless(id): {spaceless(owner[id]): 1} for id in self.split.test if owner[id] in some}
            for name, some in (("old", set(self.split.initial)), ("new", set(self.split.new)))
        }

    def _write_qrels(self) -> None:
        for name, judged in self._qrels.items():
            write_lines(self.pieces.folder / "split" / f"qrels-{name}.txt", qrels_lines(judged))

    # The initial model

    @property
    def frozen(self) -> FrozenSettings:
        """How V is trained."""
        return FrozenSettings(epochs=self.settings.frozen_epochs, seed=self.settings.seed)

    def initial_task(self, start: Start = "text") -> Task:
        """Trains the initial model once and keeps its vectors beside the piece."""

        def run(progress: Progress) -> Piece:
            settings = FrozenSettings(epochs=self.settings.frozen_epochs, seed=self.settings.seed, start=start)
            vectors = trained(self.initial, settings, progress=progress)
            self.pieces.keep_array(f"initial/{start}", vectors)
            return {"documents": len(vectors), "queries": len(self.initial.queries)}

        return Task(name=f"initial/{start}", run=run, seconds=self.training_seconds(len(self.initial)))

    def initial_vectors(self, start: Start = "text") -> Floats:
        """V of the initial model, (n, h)."""
        return self.pieces.array(f"initial/{start}")

    @cached_property
    def _states(self) -> dict[tuple[Method, Start], State]:
        return {}

    def state(self, form: Method, start: Start = "text") -> State:
        """The initial model as documents are added to it."""
        if (form, start) not in self._states:
            self._states[form, start] = State.of(self.initial_vectors(start), newcomers(self.initial), form)
        return self._states[form, start]

    # Time

    def encoding_seconds(self, part: Part, *, queries: bool) -> float:
        """What it cost to embed these documents' texts, and with `queries` their queries too."""
        seconds = self.data.seconds
        total = seconds.get("encode documents", 0.0) * len(part) / len(self.data.documents)
        if queries:
            natural = int((~part.queries.generated).sum())
            total += seconds.get("encode queries", 0.0) * natural / max(1, len(self.data.queries))
            spans = len(part.queries) - natural
            total += seconds.get("encode spans", 0.0) * spans / max(1, len(self.data.spans))
        return total

    def training_seconds(self, documents: int, epochs: int | None = None) -> float:
        """Roughly how long frozen training of this many documents takes here."""
        share = documents / 9_748
        return 1.0 + 20.0 * (epochs or self.settings.frozen_epochs) * share * share

    def judging_seconds(self) -> float:
        """Roughly how long ranking all old and new test queries takes here."""
        return 0.2 + 2.0 * (len(self.data.documents) / 9_748) ** 2

    def piece(self, name: str) -> dict[str, Any]:
        """A finished piece."""
        return self.pieces[name]

    def all_pieces(self, names: Sequence[str]) -> list[dict[str, Any]]:
        return [self.pieces[name] for name in names]
