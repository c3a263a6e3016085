"""The store against a dictionary, over every verb, reopening, compaction, backup and restore."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from crash_worker import Mirror
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
from store_samples import H, content, contents, sample

from incdsi.errors import DuplicateDocument, UnknownDocument
from incdsi.filters import parse
from incdsi.store import Store

IDS = st.sampled_from(["a", "b", "c", "d", "é\0"])


class Interrupted(Exception):
    pass


class StoreAgainstDict(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store.create(self.folder / "0", {"encoder": "none"})
        self.mirror = Mirror(Store.open(self.store.path, writer=False))
        self.model: dict[str, int] = {}
        self.rows: dict[str, int] = {}
        self.used: set[int] = set()
        self.version = 0
        self.revision = 0
        self.copies = 0

    def next_revision(self) -> int:
        self.revision += 1
        return self.revision

    @rule(ids=st.lists(IDS, min_size=1, max_size=4))
    def insert_or_refuse(self, ids: list[str]) -> None:
        with self.store.transaction() as tx:
            for id in ids:
                revision = self.next_revision()
                if id in self.model:
                    with pytest.raises(DuplicateDocument):
                        tx.insert(sample(id, revision))
                    continue
                self.rows[id] = tx.insert(sample(id, revision))
                assert self.rows[id] not in self.used
                self.used.add(self.rows[id])
                self.model[id] = revision
                self.version += 1

    @rule(id=IDS)
    def replace_or_refuse(self, id: str) -> None:
        revision = self.next_revision()
        with self.store.transaction() as tx:
            if id not in self.model:
                with pytest.raises(UnknownDocument):
                    tx.replace(id, sample(id, revision))
                return
            tx.replace(id, sample(id, revision))
        self.model[id] = revision
        self.version += 1

    @rule(id=IDS)
    def delete_or_refuse(self, id: str) -> None:
        with self.store.transaction() as tx:
            if id not in self.model:
                with pytest.raises(UnknownDocument):
                    tx.delete(id)
                return
            assert tx.delete(id) == self.rows.pop(id)
        del self.model[id]
        self.version += 1

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def solve_again_and_back(self, data: st.DataObject) -> None:
        id = data.draw(st.sampled_from(sorted(self.model)))
        record = sample(id, self.model[id])
        other = tuple(replace(query, preserved=False, own_score=0.0) for query in record.queries)
        with self.store.transaction() as tx:
            tx.replace(id, replace(record, vector=np.zeros(H, np.float32), queries=other, constrained_by=()))
            tx.replace(id, record)
        self.version += 2

    @rule(id=IDS)
    def interrupted(self, id: str) -> None:
        with pytest.raises(Interrupted), self.store.transaction() as tx:  # noqa: PT012
            if id in self.model:
                tx.delete(id)
            tx.insert(sample(id, 999))
            tx.set_setting("lost", True)
            raise Interrupted

    @rule()
    def set_setting(self) -> None:
        with self.store.transaction() as tx:
            tx.set_setting("version", self.version)
        self.version += 1

    @rule()
    def write_base(self) -> None:
        self.store.write_base({"rows": np.array(sorted(self.rows.values()), dtype=np.int64)}, self.version)
        base = self.store.base()
        assert base is not None
        assert base.arrays["rows"].tolist() == sorted(self.rows.values())

    @rule()
    def compact(self) -> None:
        self.store.compact()

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = Store.open(self.store.path, writer=True)

    @rule()
    def go_on_with_a_restored_backup(self) -> None:
        self.copies += 1
        self.store.backup(self.folder / f"backup {self.copies}")
        self.close_stores()
        Store.restore(self.folder / f"backup {self.copies}", self.folder / str(self.copies))
        self.store = Store.open(self.folder / str(self.copies), writer=True)
        self.mirror.store = Store.open(self.store.path, writer=False)

    @rule()
    def pull(self) -> None:
        self.mirror.pull()
        held = {record.document.id: row for row, record in self.mirror.rows.items()}
        assert held == self.rows

    @invariant()
    def equals_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        assert contents(self.store) == {id: content(sample(id, r)) for id, r in self.model.items()}
        assert (len(self.store), self.store.version) == (len(self.model), self.version)
        for id, row in self.rows.items():
            assert self.store.get(id).row == row
            for constrainer in sample(id, self.model[id]).constrained_by:
                assert row in self.store.constrained_by(constrainer)
        newest = [row for id, row in self.rows.items() if self.model[id] == self.revision]
        assert self.store.filter_rows(parse({"revision": self.revision})).tolist() == newest
        assert self.store.setting("lost") is None

    def close_stores(self) -> None:
        self.mirror.store.close()
        self.store.close()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            problems = self.store.verify()
            self.close_stores()
            shutil.rmtree(self.folder)
            assert problems == []


TestStoreAgainstDict = StoreAgainstDict.TestCase
TestStoreAgainstDict.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)


@pytest.mark.slow
def test_the_store_equals_a_dictionary_for_long() -> None:
    thorough = settings(max_examples=100, stateful_step_count=40, deadline=None)
    run_state_machine_as_test(StoreAgainstDict, settings=thorough)
