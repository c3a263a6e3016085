"""A forked child leaves its parent's store alone, and what it opens itself is its own."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from store_samples import content, contents, sample

from incdsi.errors import InvalidInput
from incdsi.store import Store

HERE = Path(__file__).parent
WRITE = """
import sys
from pathlib import Path
from store_samples import sample
from incdsi.store import Store
with Store.open(Path(sys.argv[1]), writer=True) as store:
    for number in range(50):
        with store.transaction() as tx:
            tx.insert(sample(f"later {number}"))
"""


def fork(act: Callable[[], None]) -> int:
    """A child that does this and ends without the parent's clean-up; its process id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return child


def ended_well(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def fill(store: Store, *ids: str) -> dict[str, object]:
    with store.transaction() as tx:
        for id in ids:
            tx.insert(sample(id))
    return {id: content(sample(id)) for id in ids}


def test_closing_in_a_child_is_nothing_to_the_parent(store: Store) -> None:
    expected = fill(store, "a", "b")
    files = {file.name: file.stat().st_ino for file in store.path.iterdir()}

    def act() -> None:
        with pytest.raises(InvalidInput, match="opened before a fork"):
            len(store)
        store.close()
        store.close()
        gc.collect()

    assert ended_well(fork(act))
    assert {file.name: file.stat().st_ino for file in store.path.iterdir()} == files
    expected |= fill(store, "c")
    assert contents(store) == expected
    with pytest.raises(InvalidInput, match="a transaction is already open"), store.transaction(), store.transaction():
        pass
    store.close()
    with Store.open(store.path, writer=True) as again:
        assert (contents(again), again.verify()) == (expected, [])


def test_what_a_child_opens_again_stays_true_when_the_parent_closes(store: Store) -> None:
    fill(store, "a")
    (ready, say_ready), (go_on, say_go_on) = os.pipe(), os.pipe()

    def act() -> None:
        with Store.open(store.path, writer=False) as mine:
            assert len(mine) == 1
            os.write(say_ready, b".")
            os.read(go_on, 1)
            assert mine.poll()
            assert len(contents(mine)) == 51
            assert mine.verify() == []

    child = fork(act)
    os.read(ready, 1)
    store.close()  # would take the log away from a child that holds no lock
    subprocess.run([sys.executable, "-c", WRITE, str(store.path)], cwd=HERE, check=True)
    os.write(say_go_on, b".")
    assert ended_well(child)
    for descriptor in (ready, say_ready, go_on, say_go_on):
        os.close(descriptor)


@pytest.mark.parametrize("leaves", ["well", "by an error"])
def test_a_child_forked_in_a_transaction_neither_ends_it_nor_opens_the_store(
    store: Store, monkeypatch: pytest.MonkeyPatch, leaves: str
) -> None:
    monkeypatch.setattr("incdsi.store.connections.WRITER_CACHE_KIBIBYTES", 100)  # what is not committed is in the log
    store.close()
    ids = [f"d{number}" for number in range(60)]
    with Store.open(store.path, writer=True) as parent:
        block = parent.transaction()
        tx = block.__enter__()
        for id in ids:
            tx.insert(sample(id))

        def act() -> None:
            with pytest.raises(InvalidInput, match=r"was in use .* when this process was forked"):
                Store.open(store.path, writer=False)
            if leaves == "by an error":
                assert not block.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
            else:
                with pytest.raises(InvalidInput, match="opened before a fork"):
                    block.__exit__(None, None, None)
            parent.close()
            gc.collect()

        assert ended_well(fork(act))
        block.__exit__(None, None, None)
        assert contents(parent) == {id: content(sample(id)) for id in ids}
        assert parent.verify() == []


def test_a_child_forked_while_a_thread_reads_is_told_so_and_does_not_hang(store: Store) -> None:
    expected = fill(store, "a", "b")
    reading, done = threading.Event(), threading.Event()

    def read() -> None:
        with store._readers.snapshot():
            reading.set()
            done.wait()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()

    def act() -> None:
        with pytest.raises(InvalidInput, match="fork before opening it"):
            Store.open(store.path, writer=True)
        store.close()

    try:
        assert ended_well(fork(act))
    finally:
        done.set()
        thread.join()
    assert contents(store) == expected
