"""The index against a dictionary, over every verb, reopening, compaction, backup and restore."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from index_samples import MODES, TOY, ToyEncoder, answers, doc

from incdsi.documents import Document
from incdsi.errors import DuplicateDocument, UnknownDocument, VersionConflict
from incdsi.index import Index
from incdsi.store import Store

IDS = st.sampled_from(["a", "b", "c", "d", "e", "é\0"])
REVISIONS = st.integers(0, 5)
QUERIES = st.lists(
    st.sampled_from(["dry feet", "Dry  feet", "how deep", "snow", "a lamp at night", "far away"]), max_size=4
)


@dataclass
class Known:
    """What the index must remember of a document."""

    document: Document
    queries: list[str] = field(default_factory=list)

    def ask(self, texts: list[str]) -> None:
        for text in texts:
            if text.casefold().split() not in [old.casefold().split() for old in self.queries]:
                self.queries.append(" ".join(text.split()))

    def teach(self, text: str) -> None:
        self.queries = [old for old in self.queries if old.casefold() != text.casefold()]
        self.queries.append(text)


def described(id: str, revision: int) -> Document:
    return doc(id, revision, edition=revision, even=revision % 2 == 0)


def _passes(document: Document, least: int) -> bool:
    edition = int(document.metadata["edition"])  # type: ignore[arg-type]
    return edition >= least and edition % 2 == 0


class IndexAgainstDict(RuleBasedStateMachine):
    @initialize(method=st.sampled_from(["general", "general", "paper"]))
    def begin(self, method: Any) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.encoder = TOY
        self.index = Index.create(self.folder / "0", TOY, method=method)
        self.reader = Index.open(self.folder / "0", TOY)
        self.model: dict[str, Known] = {}
        self.version = 0
        self.copies = 0

    def refused(self, error: type[Exception], change: Callable[[], object]) -> None:
        version = self.index.version
        with pytest.raises(error):
            change()
        assert self.index.version == version

    @rule(id=IDS, revision=REVISIONS, queries=QUERIES)
    def add(self, id: str, revision: int, queries: list[str]) -> None:
        document = described(id, revision)
        if id in self.model:
            self.refused(DuplicateDocument, lambda: self.index.add(document, queries))
            return
        assert self.index.add(document, queries).document_id == id
        self.model[id] = Known(document)
        self.model[id].ask(queries)

    @rule(ids=st.lists(IDS, max_size=4), revision=REVISIONS, queries=QUERIES)
    def add_many(self, ids: list[str], revision: int, queries: list[str]) -> None:
        batch = [described(id, revision) for id in ids]
        if len(set(ids)) < len(ids) or self.model.keys() & set(ids):
            self.refused(DuplicateDocument, lambda: self.index.add_many(batch))
            return
        self.index.add_many(batch, dict.fromkeys(ids[:1], queries))
        for place, document in enumerate(batch):
            self.model[document.id] = Known(document)
            self.model[document.id].ask([] if place else queries)

    @rule(id=IDS, revision=REVISIONS, queries=QUERIES)
    def update(self, id: str, revision: int, queries: list[str]) -> None:
        document = described(id, revision)
        if id not in self.model:
            self.refused(UnknownDocument, lambda: self.index.update(document, queries))
            return
        self.index.update(document, queries)
        self.model[id].document = document
        self.model[id].ask(queries)

    @rule(id=IDS, revision=REVISIONS, queries=QUERIES)
    def upsert(self, id: str, revision: int, queries: list[str]) -> None:
        document = described(id, revision)
        self.index.upsert(document, queries)
        self.model.setdefault(id, Known(document)).document = document
        self.model[id].ask(queries)

    @rule(id=IDS, query=st.sampled_from(["snow", "SNOW", "my own words", "another way"]))
    def teach(self, id: str, query: str) -> None:
        if id not in self.model:
            self.refused(UnknownDocument, lambda: self.index.teach(query, id))
            return
        self.index.teach(query, id)
        self.model[id].teach(query)

    @rule(id=IDS, resolve=st.booleans())
    def delete(self, id: str, resolve: bool) -> None:
        if id not in self.model:
            self.refused(UnknownDocument, lambda: self.index.delete(id, resolve=resolve))
            return
        assert self.index.delete(id, resolve=resolve) == 1
        del self.model[id]

    @rule(least=REVISIONS, resolve=st.booleans())
    def delete_by_filter(self, least: int, resolve: bool) -> None:
        where = {"edition": {"gte": least}, "even": True}
        gone = [id for id, known in self.model.items() if _passes(known.document, least)]
        assert self.index.delete(where=where, resolve=resolve) == len(gone)
        for id in gone:
            del self.model[id]

    @rule(revision=REVISIONS, queries=QUERIES)
    def add_then_delete_is_never_added(self, revision: int, queries: list[str]) -> None:
        before = answers(self.index)
        self.index.add(described("passing", revision), queries)
        self.index.delete("passing")
        assert answers(self.index) == before

    @rule(id=IDS)
    def a_lost_update_is_refused(self, id: str) -> None:
        version = self.index.version
        self.refused(VersionConflict, lambda: self.index.upsert(described(id, 0), if_version=version - 1))
        self.refused(VersionConflict, lambda: self.index.delete(where={}, if_version=version + 1))

    @precondition(lambda self: self.index.info().held_out_queries)
    @rule()
    def tune(self) -> None:
        self.index.tune()

    @rule(seed=st.integers(0, 2))
    def adopt(self, seed: int) -> None:
        self.encoder = ToyEncoder(dimension=16 + 4 * seed, seed=seed)
        self.index.adopt(self.encoder)
        self.reader.close()
        self.reader = Index.open(self.index.engine.store.path, self.encoder)

    @rule()
    def compact(self) -> None:
        before = answers(self.index)
        self.index.compact()
        assert answers(self.index) == before

    @rule(base=st.booleans())
    def reopen(self, base: bool) -> None:
        before, path = answers(self.index), self.index.engine.store.path
        self.index.close()
        if not base:
            for file in path.glob("base.*"):
                file.unlink()
        self.index = Index.open(path, self.encoder)
        assert answers(self.index) == before

    @rule()
    def go_on_with_a_restored_backup(self) -> None:
        self.copies += 1
        before = answers(self.index)
        self.index.backup(self.folder / f"backup {self.copies}")
        self.close_both()
        Store.restore(self.folder / f"backup {self.copies}", self.folder / str(self.copies))
        self.index = Index.open(self.folder / str(self.copies), self.encoder)
        self.reader = Index.open(self.folder / str(self.copies), self.encoder)
        assert answers(self.index) == before

    @invariant()
    def equals_the_model(self) -> None:
        if not hasattr(self, "index"):
            return
        assert len(self.index) == len(self.model)
        assert {document.id: document for document in self.index.documents()} == {
            id: known.document for id, known in self.model.items()
        }
        for id, known in self.model.items():
            assert id in self.index
            assert self.index.get(id) == known.document
            assert sorted(map(str.casefold, self.index.queries(id))) == sorted(map(str.casefold, known.queries))
        assert self.index.version >= self.version
        self.version = self.index.version

    @invariant()
    def every_search_is_sound(self) -> None:
        if not hasattr(self, "index"):
            return
        for mode in MODES:
            for k in (2, 100):
                hits = self.index.search("snow and a lamp", k, mode=mode)
                assert len(hits) == min(k, len(self.model))
                assert {hit.document_id for hit in hits} <= self.model.keys()
                assert len({hit.document_id for hit in hits}) == len(hits)
                assert all(hit.document == self.model[hit.document_id].document for hit in hits)
                assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
            even = {id for id, known in self.model.items() if known.document.metadata["even"]}
            assert {h.document_id for h in self.index.search("snow edition", 100, {"even": True}, mode)} == even

    @invariant()
    def a_reader_sees_the_same(self) -> None:
        if hasattr(self, "index"):
            assert answers(self.reader) == answers(self.index)

    def close_both(self) -> None:
        self.reader.close()
        self.index.close()

    def teardown(self) -> None:
        if hasattr(self, "index"):
            problems = self.index.verify()
            self.close_both()
            shutil.rmtree(self.folder)
            assert problems == []


TestIndexAgainstDict = IndexAgainstDict.TestCase
TestIndexAgainstDict.settings = settings(max_examples=8, stateful_step_count=16, deadline=None)


@pytest.mark.slow
def test_the_index_equals_a_dictionary_for_long() -> None:
    thorough = settings(max_examples=80, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(IndexAgainstDict, settings=thorough)
