"""A disk that fails at any call: one of our errors, nothing lost, nothing half-done, and one can go on."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from fault_injection import Trial
from store_samples import sample
from test_store_powerloss import look, with_model

from incdsi.store import Store


def insert(store: Store, root: Path) -> None:
    with store.transaction() as tx:
        for id in ("new", "newer"):
            tx.insert(sample(id))
        tx.replace("a", sample("a", 1))
        tx.delete("b")
        tx.set_setting("weight", 2)


def write_base(store: Store, root: Path) -> None:
    store.write_base({"rows": np.arange(5)}, store.version)


def compact(store: Store, root: Path) -> None:
    store.compact()


def backup(store: Store, root: Path) -> None:
    store.backup(root / "backup")


def create(store: Store, root: Path) -> None:
    Store.create(root / "restored", {}).close()


def create_inside(store: Store, root: Path) -> None:
    Store.create(root / "mounted", {}, prepare=with_model).close()


def restore(store: Store, root: Path) -> None:
    Store.restore(root / "shop", root / "restored")


VERBS = (insert, write_base, compact, backup, create, create_inside, restore)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template")
    (folder / "mounted").mkdir()
    with Store.create(folder / "shop", {"weight": 1}) as store:
        for id in ("a", "b", "c"):
            with store.transaction() as tx:
                tx.insert(sample(id))
        store.write_base({"rows": np.arange(3)}, store.version)
        with store.transaction() as tx:
            tx.delete("c")
    return folder


def go_on(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("after"))
    assert store.verify() == []


def trial(template: Path, scratch: Path, verb: Callable[[Store, Path], None]) -> Trial[Store]:
    return Trial(
        template=template,
        scratch=scratch,
        open=lambda root: Store.open(root / "shop", writer=True),
        verb=verb,
        look=look,
        use=go_on,
        tidying=verb in (write_base, compact, create, create_inside),  # a store that was created may fail to be opened
    )


@pytest.mark.parametrize("verb", VERBS)
def test_some_calls_fail(template: Path, scratch: Path, verb: Callable[[Store, Path], None]) -> None:
    assert list(trial(template, scratch, verb).problems(every=31, seed=random.randrange(2**31))) == []


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_every_call_fails_in_every_way(template: Path, scratch: Path, verb: Callable[[Store, Path], None]) -> None:
    assert list(trial(template, scratch, verb).problems(every=1, seed=0)) == []
