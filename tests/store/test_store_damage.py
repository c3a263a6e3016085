"""Disk full, read-only, corrupted: one sentence, and nothing that was acknowledged is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from store_samples import content, contents, sample

from incdsi.errors import CorruptStore, DiskFull, IndexLocked, InvalidInput
from incdsi.store import Store
from tests.mounts import mounted, read_only


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=3m", "tmpfs") as disk:
        yield disk


def test_an_index_is_made_at_a_mount_point(small_disk: Path) -> None:
    with Store.create(small_disk, {}) as store:
        with store.transaction() as tx:
            tx.insert(sample("a"))
        assert contents(store) == {"a": content(sample("a"))}
    assert (small_disk / "store.db").is_file()


def test_a_full_disk_refuses_the_change_and_keeps_all_the_others(small_disk: Path) -> None:
    expected = {}
    with Store.create(small_disk / "shop", {}) as store:
        with pytest.raises(DiskFull, match="free some space") as caught:  # noqa: PT012
            for number in range(10_000):
                record = sample(f"d{number}")
                with store.transaction() as tx:
                    tx.insert(record)
                expected[f"d{number}"] = content(record)
        assert caught.value.errno == 28
        assert len(expected) > 20
        assert contents(store) == expected
        assert store.verify() == []
        with pytest.raises(DiskFull):
            store.backup(small_disk / "backup")
        with pytest.raises(DiskFull):
            store.write_base({"big": np.zeros(10**6)}, store.version)
        assert sorted(os.listdir(small_disk)) == ["shop"]
        assert not list(store.path.glob("base*"))
        with pytest.raises(DiskFull):
            Store.create(small_disk / "second", {}, prepare=lambda f: (f / "m").write_bytes(b"m" * 4_000_000) and None)
        subprocess.run(["mount", "-o", "remount,size=12m", str(small_disk)], check=True)
        with store.transaction() as tx:
            tx.insert(sample("after"))
        store.compact()
    with Store.open(small_disk / "shop", writer=False) as reopened:
        assert contents(reopened) == expected | {"after": content(sample("after"))}
        assert reopened.verify() == []


def test_a_store_that_a_full_disk_refuses_leaves_no_file_open(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "ballast").write_bytes(bytes(4_000_000))
    with pytest.raises(DiskFull) as caught:
        Store.create(small_disk / "shop", {})
    assert caught.traceback  # whose frames keep whatever was not closed
    opened = [os.readlink(link) for link in Path("/proc/self/fd").iterdir() if os.path.islink(link)]
    assert [path for path in opened if path.startswith(str(small_disk))] == []


@pytest.mark.parametrize("files", [1, 30])
def test_a_backup_that_does_not_fit_is_one_sentence_and_leaves_nothing(
    store: Store, small_disk: Path, files: int
) -> None:
    (store.path / "model" / "part").mkdir(parents=True)
    for number in range(files):
        (store.path / "model" / "part" / f"weights {number}").write_bytes(bytes(4_000_000 // files))
    (small_disk / "empty").mkdir()
    for target in ("backup", "empty"):
        with pytest.raises(DiskFull, match=r"^[^\[(]*free some space"):
            store.backup(small_disk / target)
    assert [path.name for path in small_disk.rglob("*")] == ["empty"]


def test_catching_a_full_disk_inside_the_block_does_not_commit_half_a_document(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.store.connections.WRITER_CACHE_KIBIBYTES", 200)  # spill early
    with Store.create(small_disk / "shop", {}) as store:
        with pytest.raises(InvalidInput, match="nothing was kept"), store.transaction() as tx:  # noqa: PT012
            with pytest.raises(DiskFull):  # noqa: PT012
                for number in range(10_000):
                    tx.insert(sample(f"d{number}"))
            with pytest.raises(InvalidInput, match="end the transaction"):
                tx.insert(sample("small", 3))
        assert contents(store) == {}
        assert store.verify() == []


@pytest.mark.parametrize("writer", ["at rest", "at work"])
def test_a_read_only_folder_can_be_read(tmp_path: Path, writer: str) -> None:
    store = Store.create(tmp_path / "shop", {})
    with store.transaction() as tx:
        tx.insert(sample("a"))
    if writer == "at rest":
        store.close()
    with read_only(store.path) as view, Store.open(view, writer=False) as reader:
        assert contents(reader) == {"a": content(sample("a"))}
        assert reader.verify() == []
        assert reader.base() is None
        assert not reader.poll()
        with pytest.raises(InvalidInput, match="open the index for reading"):
            Store.open(view, writer=True)
        if writer == "at rest":
            store = Store.open(tmp_path / "shop", writer=True)
        with store.transaction() as tx:
            tx.insert(sample("b"))
        assert reader.poll()
        assert contents(reader) == {id: content(sample(id)) for id in "ab"}
        store.close()
        assert contents(reader) == {id: content(sample(id)) for id in "ab"}
    store.close()


def test_a_log_left_in_a_read_only_folder_is_read_or_refused_never_ignored(tmp_path: Path) -> None:
    script = """
import os, sys
from store_samples import sample
from incdsi.store import Store
store = Store.create(sys.argv[1], {})
with store.transaction() as tx:
    tx.insert(sample("a"))
os._exit(0)
"""
    here = Path(__file__).parent
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "shop")], cwd=here, check=True)
    with read_only(tmp_path / "shop") as view, Store.open(view, writer=False) as store:
        assert contents(store) == {"a": content(sample("a"))}
    (tmp_path / "shop" / "store.db-shm").unlink()
    with read_only(tmp_path / "shop") as view, pytest.raises(InvalidInput, match="copy the folder"):
        Store.open(view, writer=False)
    with Store.open(tmp_path / "shop", writer=False) as store:
        assert contents(store) == {"a": content(sample("a"))}


def test_what_is_read_in_a_read_only_folder_is_of_one_moment_or_refused(tmp_path: Path) -> None:
    with Store.create(tmp_path / "shop", {}) as store, store.transaction() as tx:
        for number in range(100):
            tx.insert(sample(f"d{number}"))
    with read_only(tmp_path / "shop") as view, Store.open(view, writer=False) as reader:
        reading = reader.changes(0).upserts
        found = [next(reading)]
        with Store.open(tmp_path / "shop", writer=True) as elsewhere, elsewhere.transaction() as tx:
            for number in range(100):
                tx.replace(f"d{number}", sample(f"d{number}", 1))
        with pytest.raises(IndexLocked, match="changed by another process while it was read; try again"):
            found.extend(reading)
        assert {record.document.metadata["revision"] for record in found} == {0}
        assert contents(reader) == {f"d{number}": content(sample(f"d{number}", 1)) for number in range(100)}


def full_store(path: Path) -> bytes:
    with Store.create(path, {}) as store, store.transaction() as tx:
        for number in range(40):
            tx.insert(sample(f"d{number}"))
    return (path / "store.db").read_bytes()


@pytest.mark.parametrize("writer", [False, True])
@pytest.mark.parametrize("damage", ["empty", "noise", "header", "truncated", "another program's"])
def test_a_corrupted_store_is_refused_with_the_way_back(tmp_path: Path, damage: str, writer: bool) -> None:
    whole = full_store(tmp_path / "shop")
    file = tmp_path / "shop" / "store.db"
    damaged = {
        "empty": b"",
        "noise": np.random.default_rng(0).bytes(len(whole)),
        "header": b"x" * 100 + whole[100:],
        "truncated": whole[: len(whole) // 2],
        "another program's": whole[:68] + b"\0\0\0\1" + whole[72:],
    }[damage]
    file.write_bytes(damaged)
    with pytest.raises(CorruptStore, match=r"shop/store\.db.*incdsi restore"):
        Store.open(tmp_path / "shop", writer=writer)
    assert file.read_bytes() == damaged


def test_a_store_without_its_counters_is_refused(store: Store) -> None:
    store.close()
    connection = apsw.Connection(str(store.path / "store.db"))
    connection.execute("DELETE FROM state")
    connection.close()
    with pytest.raises(CorruptStore, match="counters"):
        Store.open(store.path, writer=False)


def outcome(path: Path, expected: dict[str, Any]) -> str:
    """What a damaged store is found to be; never one that says it is sound and holds something else."""
    try:
        store = Store.open(path, writer=False)
    except CorruptStore:
        return "refused"
    with store:
        if not store.verify():
            assert contents(store) == expected
            return "unharmed"
        found = read(store)
        assert not isinstance(found, CorruptStore) or "restore a backup" in str(found)
        return "named"


def read(store: Store) -> dict[str, Any] | CorruptStore:
    """What it holds, or how it says that it cannot tell; any other error is one of ours."""
    try:
        return contents(store)
    except CorruptStore as error:
        return error


def test_damage_in_the_pages_is_an_error_or_a_problem_never_silence(tmp_path: Path) -> None:
    whole = full_store(tmp_path / "shop")
    expected = {f"d{n}": content(sample(f"d{n}")) for n in range(40)}
    file = tmp_path / "shop" / "store.db"
    rng = np.random.default_rng(1)
    outcomes: list[str] = []
    for _ in range(40):
        position = int(rng.integers(100, len(whole) - 64))
        file.write_bytes(whole[:position] + rng.bytes(64) + whole[position + 64 :])
        outcomes.append(outcome(tmp_path / "shop", expected))
    assert outcomes.count("unharmed") < 20  # only in bytes that hold nothing
    assert outcomes.count("named") > 0


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("DELETE FROM inputs WHERE row = 1", "row 1"),
        ("UPDATE solutions SET vector = x'0000c07f' WHERE row = 1", "row 1"),
        ("UPDATE documents SET text = 'other' WHERE row = 1", "text does not match its checksum"),
        ("UPDATE inputs SET texts = replace(texts, 'query', 'guess') WHERE row = 1", "checksum"),
        ("INSERT INTO links VALUES (1, 77)", "solution does not match its checksum"),
        ("UPDATE documents SET sequence = 99 WHERE row = 1", "sequence"),
        ("INSERT INTO tombstones VALUES (1, 2)", "both a document and a tombstone"),
        ("UPDATE state SET purged_before = 9, sequence = 9; INSERT INTO tombstones VALUES (7, 3)", "sequence"),
        ("DELETE FROM metadata WHERE row = 1", "metadata 'revision'"),
        ("UPDATE sqlite_sequence SET seq = 0", "last one given out"),
        ("DELETE FROM migrations", "migrations"),
        ("INSERT INTO solutions VALUES (55, x'', x'', x'', 0)", "not in documents"),
    ],
)
def test_verify_names_what_is_wrong(tmp_path: Path, statement: str, says: str) -> None:
    with Store.create(tmp_path / "shop", {}) as store, store.transaction() as tx:
        tx.insert(next(record for record in map(sample, "abcdefgh") if record.queries))
        tx.insert(sample("z"))
    connection = apsw.Connection(str(tmp_path / "shop" / "store.db"))
    connection.execute(statement)
    connection.close()
    with Store.open(tmp_path / "shop", writer=False) as store:
        assert any(says in problem for problem in store.verify()), store.verify()
