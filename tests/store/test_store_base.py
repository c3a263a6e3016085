from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from store_samples import sample

from incdsi.errors import CorruptStore, InvalidInput
from incdsi.store import Store

ARRAYS = {
    "document_vectors": np.arange(12, dtype=np.float32).reshape(4, 3),
    "own_scores": np.array([0.5, -1.0]),
    "rows": np.array([1, 2, 3]),
    "ids": np.array([b"a", b"bc"]),
    "empty": np.zeros((0, 3), np.float32),
}


def base_path(store: Store) -> Path:
    (found,) = store.path.glob("base.*")
    return found


def test_a_base_is_mapped_as_it_was_written(store: Store) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    assert store.base() is None
    store.write_base(ARRAYS, store.version)
    base = store.base()
    assert base is not None
    assert base.sequence == 1
    assert base.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        found = base.arrays[name]
        assert found.dtype == array.dtype
        assert np.array_equal(found, array)
        assert not found.flags.writeable
        assert found.flags.aligned
    assert isinstance(base.arrays["document_vectors"], np.memmap)
    assert store.verify() == []


def test_a_new_generation_replaces_the_old_and_old_maps_stay_readable(store: Store) -> None:
    store.write_base(ARRAYS, 0)
    old = store.base()
    with Store.open(store.path, writer=False) as reader:
        store.write_base({"rows": np.zeros(2)}, 0)
        assert base_path(store).name == "base.2.bin"
        new = reader.base()
        assert old is not None
        assert new is not None
        assert np.array_equal(old.arrays["document_vectors"], ARRAYS["document_vectors"])
        assert new.arrays.keys() == {"rows"}


@pytest.mark.parametrize("position", [0, 9, 20, 60, 200])
def test_a_base_with_a_damaged_header_is_not_used(store: Store, position: int) -> None:
    store.write_base(ARRAYS, 0)
    damaged = bytearray(base_path(store).read_bytes())
    damaged[position] ^= 0xFF
    base_path(store).write_bytes(damaged)
    assert store.base() is None
    assert any("base" in problem for problem in store.verify())


@pytest.mark.parametrize("keep", [0, 10, 100, -64, -1])
def test_a_torn_base_is_not_used(store: Store, keep: int) -> None:
    store.write_base(ARRAYS, 0)
    base_path(store).write_bytes(base_path(store).read_bytes()[:keep])
    assert store.base() is None
    assert any("base" in problem for problem in store.verify())
    store.write_base(ARRAYS, 0)
    assert store.base() is not None
    assert store.verify() == []


def test_damage_inside_the_arrays_is_found_by_verify(store: Store) -> None:
    store.write_base(ARRAYS, 0)
    content = bytearray(base_path(store).read_bytes())
    position = content.index(ARRAYS["document_vectors"].tobytes())
    content[position + 5] ^= 1
    base_path(store).write_bytes(content)
    assert [problem for problem in store.verify() if "document_vectors" in problem]


def test_damage_is_found_when_an_array_is_first_taken(store: Store) -> None:
    store.write_base(ARRAYS, 0)
    content = bytearray(base_path(store).read_bytes())
    content[content.index(ARRAYS["document_vectors"].tobytes()) + 5] ^= 1
    base_path(store).write_bytes(content)
    base = store.base()
    assert base is not None
    assert np.array_equal(base.arrays["rows"], ARRAYS["rows"])
    with pytest.raises(CorruptStore, match="'document_vectors' does not match its checksum"):
        base.arrays["document_vectors"]


def test_rows_with_sums_of_their_own_are_taken_unread_and_verify_reads_them(store: Store) -> None:
    sums = {"document_vectors.sums": np.arange(4, dtype=np.uint64)}
    store.write_base({**ARRAYS, **sums}, 0)
    content = bytearray(base_path(store).read_bytes())
    content[content.index(ARRAYS["document_vectors"].tobytes()) + 5] ^= 1
    base_path(store).write_bytes(content)
    base = store.base()
    assert base is not None
    assert not np.array_equal(base.arrays["document_vectors"], ARRAYS["document_vectors"])
    assert [problem for problem in store.verify() if "document_vectors" in problem]


def test_a_base_of_an_older_version_is_checked_by_sha256(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.store.base._DIGESTS", {"sha256": hashlib.sha256})
    store.write_base(ARRAYS, 0)
    assert b"checksum" not in base_path(store).read_bytes()
    test_damage_is_found_when_an_array_is_first_taken(store)


def test_a_base_of_another_store_or_generation_is_not_used(store: Store, tmp_path: Path) -> None:
    with Store.create(tmp_path / "other", {}) as other:
        other.write_base(ARRAYS, 0)
        store.write_base(ARRAYS, 0)
        base_path(store).write_bytes(base_path(other).read_bytes())
        assert store.base() is None
    store.write_base(ARRAYS, 0)
    first = base_path(store).read_bytes()
    store.write_base(ARRAYS, 0)
    base_path(store).write_bytes(first)
    assert store.base() is None


def test_a_missing_base_is_no_problem_and_litter_is_swept_on_opening(store: Store) -> None:
    store.write_base(ARRAYS, 0)
    base_path(store).unlink()
    assert store.base() is None
    assert store.verify() == []
    for name in ("base.7.bin", "base.2.bin.tmp"):
        (store.path / name).touch()
    (store.path / "base.txt").touch()
    store.close()
    Store.open(store.path, writer=True).close()
    assert [file.name for file in store.path.glob("base*")] == ["base.txt"]


def test_wrong_bases_are_refused_and_leave_no_file(store: Store) -> None:
    with pytest.raises(InvalidInput, match="sequence 0 to 0"):
        store.write_base(ARRAYS, 1)
    with pytest.raises(InvalidInput, match="dtype object"):
        store.write_base({"x": np.array([object()])}, 0)
    assert list(store.path.glob("base*")) == []


class Slices:
    """An array that gives slices alone, as rows too many to hold twice do."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        self.shape, self.dtype = array.shape, array.dtype
        self.most = 0

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, here: slice) -> np.ndarray:
        self.most = max(self.most, len(self._array[here]))
        return self._array[here]


def test_an_array_may_come_in_slices_and_is_never_asked_for_as_a_whole(store: Store) -> None:
    whole = {"rows": np.arange(30_000, dtype=np.float32).reshape(10_000, 3), "empty": np.empty((0, 3), np.int8)}
    sliced = {name: Slices(array) for name, array in whole.items()}
    store.write_base(sliced, store.version)
    base = store.base()
    assert base is not None
    for name, array in whole.items():
        np.testing.assert_array_equal(base.arrays[name], array)
        assert base.arrays[name].dtype == array.dtype
    assert sliced["rows"].most < 5000
    assert store.verify() == []
