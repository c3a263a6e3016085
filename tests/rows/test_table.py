"""Table: rows of a mapped file are used where they lie, and nobody can tell from the answers."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from incdsi.errors import DamagedBase
from incdsi.mapped import let_go
from incdsi.rows.int8 import Int8
from incdsi.rows.table import BLOCK_ROWS, Table

WIDTH = 8


def rows_of(count: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, WIDTH), dtype=np.float32)


def mapped(folder: Path, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    np.save(folder / "rows.npy", rows)
    return np.load(folder / "rows.npy", mmap_mode="r")


def products(table: Table, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    parts = table.scan(table.screen.asked(vectors), len(table), lambda _, products, asked: products)
    return np.concatenate(parts) if parts else np.empty((0, len(vectors)), dtype=np.float32)


@pytest.mark.parametrize("before", [0, 3, BLOCK_ROWS])
@pytest.mark.parametrize("count", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 2 * BLOCK_ROWS + 5])
def test_mapped_rows_answer_as_copied_ones_do(tmp_path: Path, before: int, count: int) -> None:
    saved, earlier, later = rows_of(count, 1), rows_of(before, 2), rows_of(7, 3)
    tables = [Table(WIDTH, Int8()) for _ in range(2)]
    for table, source in zip(tables, (mapped(tmp_path, saved), saved), strict=True):
        table.append(earlier)
        assert table.append(source) == before
        assert table.append(later) == before + count
    everything = np.concatenate([earlier, saved, later])
    for table in tables:
        np.testing.assert_array_equal(table.gather(np.arange(len(table))), everything)
    for vectors in (rows_of(1, 4), rows_of(5, 5)):
        np.testing.assert_array_equal(products(tables[0], vectors), products(tables[1], vectors))


def test_appending_behind_mapped_rows_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    saved = rows_of(BLOCK_ROWS + 10)
    table = Table(WIDTH, Int8())
    table.append(mapped(tmp_path, saved))
    table.append(rows_of(20, 6))
    np.testing.assert_array_equal(np.load(tmp_path / "rows.npy"), saved)


def test_rows_that_their_owner_changes_later_stay_as_they_were_appended() -> None:
    mine = rows_of(BLOCK_ROWS)
    table = Table(WIDTH, Int8())
    table.append(mine)
    before = mine.copy()
    mine[:] = 0
    np.testing.assert_array_equal(table.gather(np.arange(BLOCK_ROWS)), before)


@pytest.mark.parametrize("blocks", [1, 3])
def test_rows_are_gathered_in_the_order_asked_for(blocks: int) -> None:
    rows = rows_of(blocks * BLOCK_ROWS - 9)
    table = Table(WIDTH, Int8())
    table.append(rows)
    draw = np.random.default_rng(7)
    for asked in (draw.integers(0, len(rows), 300), np.arange(len(rows))[::-1], np.array([5, 5, 2]), np.empty(0, int)):
        np.testing.assert_array_equal(table.gather(asked), rows[asked])


def test_rows_of_a_file_and_those_that_came_later_are_gathered_alike(tmp_path: Path) -> None:
    rows, others = rows_of(2 * BLOCK_ROWS + 9), rows_of(BLOCK_ROWS)[::-1]
    saved = Table(WIDTH, Int8())
    saved.append(rows)
    table = Table(WIDTH, Int8())
    table.append_saved(
        "rows", saved_to(tmp_path, {f"rows{part}": a for part, a in saved.saved(np.arange(len(rows))).items()})
    )
    table.append(others)
    everything, asked = (
        np.concatenate([rows, others]),
        np.random.default_rng(7).integers(0, len(rows) + len(others), 300),
    )
    np.testing.assert_array_equal(table.gather(asked), everything[asked])
    in_memory = Table(WIDTH, Int8())
    in_memory.append(everything)
    np.testing.assert_array_equal(table.approximate(asked), in_memory.approximate(asked))
    changed = np.unique(asked)
    table.overwrite(changed, everything[::-1][changed])
    everything[changed] = everything[::-1][changed]
    np.testing.assert_array_equal(table.gather(asked), everything[asked])


@pytest.mark.parametrize("asked", [[-1], [0, 2 * BLOCK_ROWS]])
def test_rows_that_are_not_there_are_refused(asked: list[int]) -> None:
    table = Table(WIDTH, Int8())
    table.append(rows_of(BLOCK_ROWS + 1))
    with pytest.raises(IndexError):
        table.gather(np.array(asked))


@pytest.mark.parametrize("count", [1, BLOCK_ROWS])
def test_mapped_rows_of_another_width_or_kind_are_refused(tmp_path: Path, count: int) -> None:
    table = Table(WIDTH + 1, Int8())
    with pytest.raises(ValueError, match=f"of width {WIDTH + 1}"):
        table.append(mapped(tmp_path, rows_of(count)))
    with pytest.raises(ValueError, match="expected float32 rows"):
        Table(WIDTH, Int8()).append(rows_of(count).astype(np.float64))  # type: ignore[arg-type]


def saved_to(folder: Path, arrays: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """The arrays as a mapped base gives them."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array[:])
    return {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays}


@pytest.mark.parametrize("count", [0, 5, BLOCK_ROWS, 2 * BLOCK_ROWS + 5])
def test_what_was_saved_is_taken_over_without_looking_at_the_rows(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, opened = Table(WIDTH, Int8()), Table(WIDTH, Int8())
    table.append(rows_of(count + 3))
    chosen = np.delete(np.arange(count + 3), [0, count // 2, count + 2] if count else [0, 1, 2])
    arrays = saved_to(tmp_path, {f"rows{part}": array for part, array in table.saved(chosen).items()})
    with monkeypatch.context() as patch:
        patch.setattr(Int8, "coded", None)
        opened.append_saved("rows", arrays)
    opened.append(rows_of(4, 8))
    fresh = Table(WIDTH, Int8())
    fresh.append(np.concatenate([table.gather(chosen), rows_of(4, 8)]))
    everything = np.arange(len(fresh))
    np.testing.assert_array_equal(opened.gather(everything), fresh.gather(everything))
    np.testing.assert_array_equal(opened.errors, fresh.errors)
    np.testing.assert_array_equal(opened.lengths, fresh.lengths)
    for vectors in (rows_of(1, 4), rows_of(20, 5)):
        np.testing.assert_array_equal(products(opened, vectors), products(fresh, vectors))


def damaged(folder: Path, table: Table, row: int) -> dict[str, NDArray[Any]]:
    """What the table saved, with one bit of a row turned."""
    arrays = saved_to(folder, {f"rows{part}": array for part, array in table.saved(np.arange(len(table))).items()})
    rows = np.load(folder / "rows.npy", mmap_mode="r+")
    rows.view(np.uint32)[row, 3] ^= 1
    rows.flush()
    return arrays


def test_a_damaged_row_of_a_file_is_refused_whenever_it_is_gathered_and_only_then(tmp_path: Path) -> None:
    table, opened = Table(WIDTH, Int8()), Table(WIDTH, Int8())
    table.append(rows_of(BLOCK_ROWS + 50))
    opened.append_saved("rows", damaged(tmp_path, table, BLOCK_ROWS + 7))
    vectors = rows_of(3, 5)
    np.testing.assert_array_equal(products(opened, vectors), products(table, vectors))  # a scan reads the codes
    others = np.delete(np.arange(len(table)), BLOCK_ROWS + 7)
    np.testing.assert_array_equal(opened.gather(others), table.gather(others))
    assert not opened.damaged
    for _ in range(2):
        with pytest.raises(DamagedBase, match="nothing is lost"):
            opened.gather(np.array([BLOCK_ROWS + 9, BLOCK_ROWS + 7]))
        assert opened.damaged


def test_a_damaged_row_stays_one_where_its_block_is_copied_and_is_none_where_it_is_overwritten(tmp_path: Path) -> None:
    table, opened = Table(WIDTH, Int8()), Table(WIDTH, Int8())
    table.append(rows_of(50))
    opened.append_saved("rows", damaged(tmp_path, table, 7))
    opened.append(rows_of(3, 4))
    opened.overwrite(np.array([2]), rows_of(1, 6))
    np.testing.assert_array_equal(opened.gather(np.array([2, 51])), np.stack([rows_of(1, 6)[0], rows_of(3, 4)[1]]))
    with pytest.raises(DamagedBase):
        opened.gather(np.array([7]))
    opened.overwrite(np.array([7]), rows_of(1, 9))
    np.testing.assert_array_equal(opened.gather(np.array([7])), rows_of(1, 9))


def test_damaged_rows_are_not_coded_anew(tmp_path: Path) -> None:
    table = Table(WIDTH, Int8())
    table.append(rows_of(50))
    arrays = damaged(tmp_path, table, 7)
    del arrays["rows.codes"]
    with pytest.raises(DamagedBase):
        Table(WIDTH, Int8()).append_saved("rows", arrays)


def test_rows_that_an_older_version_saved_without_sums_are_taken_as_they_are(tmp_path: Path) -> None:
    table, opened = Table(WIDTH, Int8()), Table(WIDTH, Int8())
    table.append(rows_of(50))
    arrays = saved_to(tmp_path, {f"rows{part}": array for part, array in table.saved(np.arange(50)).items()})
    del arrays["rows.sums"]
    opened.append_saved("rows", arrays)
    np.testing.assert_array_equal(opened.gather(np.arange(50)), rows_of(50))
    np.testing.assert_array_equal(opened.saved(np.arange(50))[".sums"], table.saved(np.arange(50))[".sums"])


@pytest.mark.parametrize(
    "change",
    [
        lambda arrays: arrays.pop("rows.codes"),
        lambda arrays: arrays.pop("rows.errors"),
        lambda arrays: arrays.update({"rows.codes": arrays["rows.codes"].astype(np.int16)}),
        lambda arrays: arrays.update({"rows.codes": arrays["rows.codes"][:, 1:]}),
        lambda arrays: arrays.update({"rows.scales": arrays["rows.scales"][1:]}),
    ],
)
def test_what_another_version_saved_is_coded_anew(change: Callable[[dict[str, Any]], None]) -> None:
    table, opened = Table(WIDTH, Int8()), Table(WIDTH, Int8())
    table.append(rows_of(50))
    arrays = {f"rows{part}": array[:] for part, array in table.saved(np.arange(50)).items()}
    change(arrays)
    opened.append_saved("rows", arrays)
    np.testing.assert_array_equal(products(opened, rows_of(2, 1)), products(table, rows_of(2, 1)))


def test_rows_that_were_gathered_from_a_file_are_let_go_of_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.rows.table.TOUCHED", 3)
    monkeypatch.setattr("incdsi.rows.table.SPARED", -(1 << 40))
    gone: list[Any] = []
    monkeypatch.setattr("incdsi.rows.table.let_go", lambda rows: gone.append(rows) or let_go(rows))
    rows = rows_of(2 * BLOCK_ROWS)
    table = Table(WIDTH, Int8())
    table.append(mapped(tmp_path, rows))
    table.append(rows_of(30, 9))
    everything = np.concatenate([rows, rows_of(30, 9)])
    for _ in range(5):
        asked = np.arange(3, len(table), 700)
        np.testing.assert_array_equal(table.gather(asked), everything[asked])
    assert len(gone) == 5


def lies_in_a_file(rows: Any) -> bool:
    while isinstance(rows, np.ndarray) and not isinstance(rows, np.memmap):
        rows = rows.base
    return isinstance(rows, np.memmap)


@pytest.mark.parametrize("room", [True, False])
def test_rows_beyond_what_memory_should_hold_are_put_aside_where_there_is_room(
    room: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.rows.table.HELD", 2)
    if not room:

        def full() -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        monkeypatch.setattr("tempfile.TemporaryFile", full)
    rows = rows_of(5 * BLOCK_ROWS + 9)
    table = Table(WIDTH, Int8())
    for part in (rows[:3000], rows[3000 : 2 * BLOCK_ROWS], rows[2 * BLOCK_ROWS :]):
        table.append(part)
    assert [lies_in_a_file(block.rows) for block in table._blocks] == [room] * 4 + [False] * 2
    np.testing.assert_array_equal(table.gather(np.arange(len(rows))), rows)
    fresh = Table(WIDTH, Int8())
    fresh.append(rows)
    np.testing.assert_array_equal(products(table, rows_of(3, 1)), products(fresh, rows_of(3, 1)))
