"""What only AsyncIndex does: threads, turns, cancellation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from index_samples import TOY, ToyEncoder, answers, asked_for, doc, docs

from incdsi import AsyncIndex, Index
from incdsi.client import AsyncRemoteIndex
from incdsi.errors import IndexLocked, IndexNotFound, InvalidInput
from incdsi.store import Store


class Gate(ToyEncoder):
    """An encoder that can be held up: `entered` counts who waits at it."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.entered = threading.Event(), threading.Semaphore(0)
        self.open.set()

    def encode(self, *args: Any, **kwargs: Any) -> Any:
        self.entered.release()
        assert self.open.wait(20)
        return super().encode(*args, **kwargs)


def run(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(act(), 60))


def test_it_is_the_index_in_the_folder(tmp_path: Path) -> None:
    async def act() -> None:
        async with await AsyncIndex.create(tmp_path / "shop", TOY) as index:
            await index.add_many(docs(9), asked_for(docs(9)))
            await index.teach("zebra crossing", "d3")
            assert repr(index) == f"AsyncIndex('{tmp_path / 'shop'}', 9 documents)"
            with Index.open(tmp_path / "shop", TOY) as same:
                assert [await index.search("boots", 9), await index.info()] == [same.search("boots", 9), same.info()]
            assert await index.verify() == []
            await index.backup(tmp_path / "copy")
        opened = await AsyncIndex.open(tmp_path / "copy", TOY)
        assert await opened.count() == 9
        await opened.close()
        await opened.close()
        for verb in (lambda: opened.count(), lambda: opened.add(doc("x")), lambda: anext(opened.documents())):
            with pytest.raises(InvalidInput, match="is closed; open it again"):
                await verb()
        with pytest.raises(IndexNotFound):
            await AsyncIndex.open(tmp_path / "nowhere")
        remote = await AsyncIndex.open("http://127.0.0.1:9")
        assert isinstance(remote, AsyncRemoteIndex)
        await remote.close()
        async with await AsyncIndex.build(docs(2), path=tmp_path / "built", encoder=TOY) as built:
            assert await built.count() == 2

    run(act)


def test_searches_run_beside_each_other_and_beside_a_change(tmp_path: Path) -> None:
    async def act() -> None:
        gate = Gate()
        async with await AsyncIndex.create(tmp_path / "shop", gate) as index:
            await index.add_many(docs(3))
            while gate.entered.acquire(blocking=False):  # who was there before
                pass
            gate.open.clear()
            tasks = [
                asyncio.create_task(one) for one in (index.search("boots"), index.search("tent"), index.add(doc("x")))
            ]
            for _ in tasks:
                assert await asyncio.to_thread(gate.entered.acquire, True, 20)
            assert not any(task.done() for task in tasks)
            gate.open.set()
            assert all(len(hits) >= 3 for hits in (await asyncio.gather(*tasks))[:2])
            assert await index.contains("x")

    run(act)


def test_changes_are_made_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    async def act() -> None:
        async with await AsyncIndex.create(tmp_path / "shop", TOY) as index:
            await asyncio.gather(*(index.add(doc(f"d{number}")) for number in range(20)))
            assert [one.id async for one in index.documents()] == [f"d{number}" for number in range(20)]
            assert [one.id async for one, _ in index.with_queries()] == [f"d{number}" for number in range(20)]

    run(act)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_a_change_cancelled_before_its_turn_is_not_made_and_one_at_work_is_made_whole(tmp_path: Path) -> None:
    async def act() -> None:
        gate = Gate()
        async with await AsyncIndex.create(tmp_path / "shop", gate) as index:
            gate.open.clear()
            at_work = asyncio.create_task(index.add(doc("a")))
            waiting = asyncio.create_task(index.add(doc("b")))
            assert await asyncio.to_thread(gate.entered.acquire, True, 20)
            await cancelled(waiting)
            at_work.cancel()
            await asyncio.sleep(0.05)
            at_work.cancel()
            await asyncio.sleep(0.05)
            assert not at_work.done()  # it ends when its thread does
            gate.open.set()
            await cancelled(at_work)
            assert [one.id async for one in index.documents()] == ["a"]
            await index.add(doc("b"))
        Store.open(tmp_path / "shop", writer=True).close()

    run(act)


def test_a_cancelled_batch_stops_after_the_portion_it_is_at(tmp_path: Path) -> None:
    async def act() -> None:
        told: list[tuple[int, int]] = []
        many = docs(2000)
        async with await AsyncIndex.create(tmp_path / "shop", TOY, tuning=False) as index:

            def progress(done: int, total: int) -> None:
                told.append((done, total))
                task.cancel()

            task = asyncio.create_task(index.add_many(many, progress=progress))
            with pytest.raises(asyncio.CancelledError):
                await task
            kept = await index.count()
            assert told[0][0] <= kept < 2000
            assert [one.id async for one in index.documents()] == [one.id for one in many[:kept]]
            await index.add_many(many[kept : kept + 3])
        with Index.open(tmp_path / "shop", TOY) as again:
            assert len(again) == kept + 3

    run(act)


def test_progress_is_told_in_the_loop(tmp_path: Path) -> None:
    async def act() -> None:
        here, told = threading.get_ident(), list[tuple[int, int, int]]()
        async with await AsyncIndex.create(tmp_path / "shop", TOY) as index:
            await index.add_many(docs(3), progress=lambda *done: told.append((*done, threading.get_ident())))
        assert told[-1] == (3, 3, here)

    run(act)


def test_a_listing_that_is_left_early_holds_nothing(tmp_path: Path) -> None:
    async def act() -> None:
        async with await AsyncIndex.create(tmp_path / "shop", TOY) as index:
            await index.add_many(docs(5))
            async for document, _ in index.with_queries():
                assert document.id == "d0"
                break
            lines = index.with_queries()
            await anext(lines)
            await lines.aclose()  # type: ignore[attr-defined]
            await index.delete("d0")
            await index.compact()  # refused while somebody reads an old moment

    run(act)


def test_opening_that_is_cancelled_leaves_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Index.create(tmp_path / "shop", TOY).close()
    begun, gate, opened, open_index = threading.Event(), threading.Event(), list[Any](), Index.open

    def slow(*args: Any, **kwargs: Any) -> Any:
        begun.set()
        assert gate.wait(20)
        opened.append(open_index(*args, **kwargs))
        return opened[0]

    monkeypatch.setattr(Index, "open", slow)

    async def act() -> None:
        task = asyncio.create_task(AsyncIndex.open(tmp_path / "shop", TOY))
        assert await asyncio.to_thread(begun.wait, 20)
        asyncio.get_running_loop().call_later(0.1, gate.set)  # while the cancelled await waits for it
        await cancelled(task)
        with pytest.raises(InvalidInput, match="is closed; open it again"):
            opened[0].search("boots")

    run(act)


def test_two_loops_threads_and_handles_meet_in_one_folder(tmp_path: Path) -> None:
    """A handle of asyncio's writes through the first of the process, as every handle does."""

    async def act() -> None:
        with Index.create(tmp_path / "shop", TOY) as plain:
            async with await AsyncIndex.open(tmp_path / "shop", TOY) as index:
                plain.add(doc("a"))
                await index.add(doc("b"))
                plain.add(doc("c"))
                assert await index.count() == len(plain) == 3
            assert answers(plain)
            with pytest.raises(IndexLocked):
                Store.open(tmp_path / "shop", writer=True)

    run(act)
