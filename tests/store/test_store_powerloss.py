"""A power cut at any moment loses nothing that was acknowledged and leaves nothing half-done."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from crash_worker import require_whole, revision_of
from powerloss_survival import State, recorded
from store_samples import files_with, sample

from incdsi.records import Answer
from incdsi.store import Store, connections

SECRET = "deleted for good"
Acknowledge = Callable[[], None]


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """What is recorded: a folder, and in it an empty one, as a mount point is."""
    (tmp_path / "disk" / "mounted").mkdir(parents=True)
    return tmp_path / "disk"


def everything(root: Path, acknowledge: Acknowledge) -> None:
    """Every verb of a store once, each acknowledged."""
    with Store.create(root / "shop", {"weight": 1}) as store:
        acknowledge()
        with store.transaction() as tx:
            tx.insert(sample("a"))
        acknowledge()
        with store.transaction() as tx:
            for id in ("b", "c", "d"):
                tx.insert(sample(id))
        acknowledge()
        store.write_base({"rows": np.arange(4)}, store.version)
        acknowledge()
        with store.transaction() as tx:
            tx.replace("a", sample("a", 1))
            tx.set_setting("weight", 2)
            tx.keep_answer("key", Answer(b"request", 200, b"what is said at first", tx.version))
        acknowledge()
        store.amend_answer("key", Answer(b"request", 200, b"and when all is known", store.version))
        with store.transaction() as tx:
            tx.delete("d")
        acknowledge()
        store.write_base({"rows": np.arange(3)}, store.version)
        acknowledge()
        store.compact()
        acknowledge()
        store.backup(root / "backup")
        acknowledge()
    with Store.open(root / "shop", writer=True) as store:
        with store.transaction() as tx:
            tx.replace("b", sample("b", 1))
        acknowledge()
    Store.restore(root / "backup", root / "restored")
    acknowledge()
    Store.create(root / "mounted", {}, prepare=with_model).close()
    acknowledge()


def with_model(folder: Path) -> None:
    """As an index puts its encoder there."""
    (folder / "model").mkdir()
    (folder / "model" / "weights").write_bytes(b"1234")


def look(root: Path) -> State:
    """All there is; every byte of it must be right. Without a store there is nothing."""
    found = {name: _held(root / name) for name in ("shop", "backup", "restored", "mounted")}
    if found["mounted"]:
        assert (root / "mounted" / "model" / "weights").read_bytes() == b"1234"
    return found


def _held(folder: Path) -> Any:
    if not (folder / "store.db").exists():
        return None
    with Store.open(folder, writer=False) as store:
        assert store.verify() == []
        revisions = {}
        for record in store.changes(0).upserts:
            require_whole(record)
            revisions[record.document.id] = revision_of(record)
        base = store.base()
        rows = None if base is None else base.arrays["rows"].tolist()
        return store.version, revisions, store.setting("weight"), store.answer("key"), rows


def use(root: Path) -> None:
    """Whatever the power cut left, one can go on."""
    with Store.open(root / "shop", writer=True) if _held(root / "shop") else Store.create(root / "shop", {}) as store:
        with store.transaction() as tx:
            tx.insert(sample("new"))
        assert store.verify() == []
        if not _held(root / "backup"):
            store.backup(root / "backup")
    if not _held(root / "restored"):
        Store.restore(root / "backup", root / "restored")
    if not _held(root / "mounted"):
        Store.create(root / "mounted", {}, prepare=with_model).close()


def test_a_power_cut_at_some_moments(disk: Path, scratch: Path) -> None:
    run = recorded(disk, everything, look, scratch)
    assert list(run.losses(use, every=40, seed=random.randrange(2**31))) == []


@pytest.mark.slow
def test_a_power_cut_at_every_moment(disk: Path, scratch: Path) -> None:
    run = recorded(disk, everything, look, scratch)
    assert list(run.losses(use, every=1, seed=random.randrange(2**31))) == []


def forgotten(root: Path, acknowledge: Acknowledge) -> None:
    """A document that was deleted and compacted away; only that is acknowledged."""
    with Store.create(root / "shop", {}) as store:
        with store.transaction() as tx:
            tx.insert(sample("a"))
            tx.insert(sample(SECRET))
        store.write_base({"secret": np.array([SECRET])}, store.version)
        with store.transaction() as tx:
            tx.delete(SECRET)
        store.compact()
        acknowledge()
        with store.transaction() as tx:
            tx.insert(sample("b"))


def traces(root: Path) -> State:
    """The files that hold something of the secret: its text, or its entry in a base."""
    both = (SECRET.encode(), SECRET.encode("utf-32-le"))
    return {"traces": [name for needle in both for name in files_with(root, needle)]}


def test_what_was_compacted_away_is_gone_after_a_power_cut_too(disk: Path, scratch: Path) -> None:
    run = recorded(disk, forgotten, traces, scratch)
    assert list(run.losses(every=1, seed=random.randrange(2**31), acknowledged=1)) == []


def unsynced_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(*arguments: Any, **options: Any) -> Any:
        connection = connections.open_writer(*arguments, **options)
        connection.pragma("synchronous", "off")
        return connection

    monkeypatch.setattr("incdsi.store.store.open_writer", careless)


def unsynced_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("store.files", "durable"):
        monkeypatch.setattr(f"incdsi.{module}.fsync", lambda folder: None)


def unsynced_bases(monkeypatch: pytest.MonkeyPatch) -> None:
    careless = SimpleNamespace(fsync=lambda descriptor: None, rename=lambda *names: os.rename(*names), fstat=os.fstat)
    monkeypatch.setattr("incdsi.store.base.os", careless)


@pytest.mark.parametrize(
    ("spoil", "lost"),
    [(unsynced_commits, "shop is not as in"), (unsynced_names, "backup is not as in"), (unsynced_bases, "base")],
)
def test_the_power_cut_test_would_notice_a_loss(
    disk: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch, spoil: Any, lost: str
) -> None:
    spoil(monkeypatch)
    run = recorded(disk, everything, look, scratch)
    monkeypatch.undo()
    assert any(lost in one for one in run.losses(every=11, seed=0))
