"""A power cut or a failing disk at any moment: an index opens to what it acknowledged, and answers by it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fault_injection import Trial
from index_samples import TOY, ToyEncoder, answers, asked, asked_for, doc, docs
from powerloss_survival import State, recorded

from incdsi.index import Index
from incdsi.store import Store

pytestmark = pytest.mark.folder

OTHER = ToyEncoder(seed=1)


@pytest.fixture(autouse=True)
def always_a_base(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.engine.local.engine.BASE_EVERY", 1)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    (tmp_path / "disk").mkdir()
    return tmp_path / "disk"


def everything(root: Path, acknowledge: Callable[[], None]) -> None:
    """Every verb of an index, each acknowledged."""
    changes: list[Callable[[Index], Any]] = [
        lambda index: index.add(doc("a"), asked("a")),
        lambda index: index.add_many(docs(8), asked_for(docs(8), 5)),
        lambda index: index.update(doc("a", 1)),
        lambda index: index.teach("a lamp for the night", "a"),
        lambda index: index.attach({"a": ["what glows"], "d1": ["what burns"]}),
        lambda index: index.delete("d2"),
        lambda index: index.delete("d3", resolve=True),
        lambda index: index.tune(),
        lambda index: index.set_tuning(False),
        lambda index: index.adopt(OTHER),
        lambda index: index.compact(),
        lambda index: index.backup(root / "backup"),
    ]
    with Index.create(root / "shop", TOY) as index:
        acknowledge()
        for change in changes:
            change(index)
            acknowledge()
    Store.restore(root / "backup", root / "restored")
    acknowledge()


def look(root: Path) -> State:
    """What is stored, and every answer made of it."""
    return {name: _held(root / name) for name in ("shop", "backup", "restored")}


def _held(folder: Path) -> Any:
    if not (folder / "store.db").exists():
        return None
    with Store.open(folder, writer=False) as store:
        assert store.verify() == []
        settings, version = str(store.setting("index")), store.version
    with Index.open(folder, encoder_of(settings)) as index:
        held = {document.id: (document.text, queries) for document, queries in index.with_queries()}
        return version, settings, held, hashlib.sha256(repr(answers(index)).encode()).hexdigest()


def encoder_of(settings: str) -> ToyEncoder:
    return OTHER if OTHER.fingerprint in settings else TOY


def opened(root: Path) -> Index:
    with Store.open(root / "shop", writer=False) as store:
        encoder = encoder_of(str(store.setting("index")))
    return Index.open(root / "shop", encoder)


def go_on(index: Index) -> None:
    index.add(doc("new"), asked("new"))
    assert index.verify() == []
    assert index.search("new", mode="lexical")[0].document_id == "new"


def use(root: Path) -> None:
    index = opened(root) if (root / "shop").exists() else Index.create(root / "shop", TOY)
    with index:
        go_on(index)


def test_a_power_cut_at_some_moments(disk: Path, scratch: Path) -> None:
    run = recorded(disk, everything, look, scratch)
    assert list(run.losses(use, every=150, seed=random.randrange(2**31))) == []


@pytest.mark.slow
def test_a_power_cut_at_every_moment(disk: Path, scratch: Path) -> None:
    run = recorded(disk, everything, look, scratch)
    assert list(run.losses(use, every=1, seed=random.randrange(2**31))) == []


VERBS: dict[str, Callable[[Index, Path], Any]] = {
    "add": lambda index, root: index.add_many([doc("b"), doc("c")], asked_for([doc("b")])),
    "update": lambda index, root: index.update(doc("a", 1)),
    "teach": lambda index, root: index.teach("a lamp for the night", "a"),
    "attach": lambda index, root: index.attach({"a": ["what glows"], "d1": ["what burns"]}),
    "delete": lambda index, root: index.delete("d2"),
    "tune": lambda index, root: index.tune(),
    "adopt": lambda index, root: index.adopt(OTHER),
    "compact": lambda index, root: index.compact(),
    "backup": lambda index, root: index.backup(root / "backup"),
}


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    with Index.create(folder / "shop", TOY) as index:
        index.add(doc("a"), asked("a"))
        index.add_many(docs(5), asked_for(docs(5), 5))
        index.delete("d4")
    return folder


def trial(template: Path, scratch: Path, verb: str) -> Trial[Index]:
    return Trial(template=template, scratch=scratch, open=opened, verb=VERBS[verb], look=look, use=go_on)


@pytest.mark.parametrize("verb", VERBS)
def test_some_calls_fail(template: Path, scratch: Path, verb: str) -> None:
    assert list(trial(template, scratch, verb).problems(every=53, seed=random.randrange(2**31))) == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_call_fails_in_every_way(template: Path, scratch: Path, verb: str) -> None:
    assert list(trial(template, scratch, verb).problems(every=1, seed=0)) == []
