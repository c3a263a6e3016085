"""What was answered under a key is there exactly when what it was answered for is."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from powerloss_survival import State, recorded
from store_samples import sample

from incdsi.errors import DuplicateDocument
from incdsi.records import Answer
from incdsi.store import Store, answers

FIRST, BETTER = Answer(b"asked", 201, b"first", 1), Answer(b"asked", 201, b"better", 1)
IDS = ("a", "b", "c", "d")


def answered(root: Path, acknowledge: Callable[[], None]) -> None:
    """Writes that are answered with their commit, and amended after it."""
    with Store.create(root / "shop", {}) as store:
        acknowledge()
        for id in IDS:
            with store.transaction() as tx:
                tx.insert(sample(id))
                tx.keep_answer(f"key of {id}", FIRST)
            store.amend_answer(f"key of {id}", BETTER)
            acknowledge()


def look(root: Path) -> State:
    """Which documents are there; each with an answer, the first or the better one."""
    if not (root / "shop").exists():
        return {"answered": None}
    with Store.open(root / "shop", writer=False) as store:
        assert store.verify() == []
        found = {id: store.answer(f"key of {id}") for id in IDS}
        assert {id for id in IDS if id in store} == {id for id in IDS if found[id] is not None}
        assert all(answer in (FIRST, BETTER) for answer in found.values() if answer is not None)
        return {"answered": [id for id in IDS if found[id] is not None]}


def test_after_a_power_cut_a_write_is_there_with_its_answer_or_neither_is(tmp_path: Path, scratch: Path) -> None:
    run = recorded(tmp_path / "disk", answered, look, scratch)
    assert list(run.losses(every=30, seed=random.randrange(2**31))) == []


@pytest.mark.slow
def test_at_every_moment_a_write_is_there_with_its_answer_or_neither_is(tmp_path: Path, scratch: Path) -> None:
    run = recorded(tmp_path / "disk", answered, look, scratch)
    assert list(run.losses(every=1, seed=random.randrange(2**31))) == []


def test_an_answer_goes_with_a_transaction_that_is_undone(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    with pytest.raises(DuplicateDocument), store.transaction() as tx:  # noqa: PT012
        tx.keep_answer("key", FIRST)
        tx.insert(sample("a"))
    assert store.answer("key") is None
    assert store.version == 1


def test_an_answer_is_no_change_of_the_index(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
        tx.keep_answer("key", FIRST)
    store.amend_answer("key", BETTER)
    assert (store.version, store.answer("key")) == (1, BETTER)


def test_the_latest_answers_are_remembered_for_a_day(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(answers.time, "time", lambda: clock[0])
    monkeypatch.setattr(answers, "MOST", 3)
    for number in range(5):
        clock[0] += 1.0
        store.amend_answer(f"key {number}", FIRST)
    assert [number for number in range(5) if store.answer(f"key {number}")] == [2, 3, 4]
    clock[0] += answers.SECONDS - 1.0
    assert [number for number in range(5) if store.answer(f"key {number}")] == [4]


def test_compacting_forgets_every_answer(store: Store) -> None:
    store.amend_answer("key", FIRST)
    store.compact()
    assert store.answer("key") is None
    store.amend_answer("key", BETTER)
    assert store.answer("key") == BETTER
    assert store.verify() == []
