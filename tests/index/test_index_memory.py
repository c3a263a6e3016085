"""Adding and deleting for long leaves nothing behind in memory."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from index_samples import TOY, answers, asked, asked_for, doc, docs

from incdsi.index import Index
from incdsi.records import Record

pytestmark = pytest.mark.folder


def test_slots_stay_bounded_over_many_rounds(index: Index) -> None:
    index.add_many(docs(10))
    found = answers(index)
    with Index.open(index.engine.store.path, TOY) as reader:
        most = 0
        for round_ in range(6):
            batch = [doc(f"x{round_}-{number}", passing=True) for number in range(200)]
            index.add_many(batch)
            for document in batch[:3]:
                index.update(doc(document.id, 1, passing=True))
            index.delete(where={"passing": True})
            index.teach(f"lesson {round_}", "d3")
            reader.search("boots")
            for one in (index, reader):
                most = max(most, len(one.engine.live.vectors.alive))
                assert len(one.engine.live) == 10
        assert most <= 2 * 210 + 1024 + 210
        assert answers(reader) == answers(index)
        assert {entry[2] for entry in answers(index)} == {entry[2] for entry in found}
        preserve = len(index.engine.live.vectors.under(0.0))
        assert preserve <= 2 * sum(len(index.engine.store.get(f"d{n}").queries) for n in range(10)) + 1


def test_info_and_tuning_hold_a_few_records_at_a_time(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = docs(300)
    index.set_tuning(True)
    with monkeypatch.context() as patch:
        patch.setattr("incdsi.index.tuning.ENOUGH", 10**6)
        index.add_many(batch, asked_for(batch, 4))
    for name in ("tuning.SAMPLE", "quality.PORTION", "replacement.BATCH"):
        monkeypatch.setattr(f"incdsi.index.{name}", 16)
    held, most, records = list[weakref.ref[Any]](), 0, index.engine.records

    def watched() -> Iterator[Record]:
        nonlocal held, most
        for record in records():
            held = [one for one in held if one() is not None]
            held.append(weakref.ref(record.anchor))
            most = max(most, len(held))
            yield record

    monkeypatch.setattr(index.engine, "records", watched)
    assert index.info().held_out_queries > 50
    assert most < 40
    assert index.tune().queries > 50
    assert most < 80


def test_info_reads_an_index_once_where_nothing_is_held_out(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    index.add_many(docs(5))
    reads, records = list[str](), index.engine.records
    monkeypatch.setattr(index.engine, "records", lambda: (reads.append("all"), records())[1])
    assert index.info().held_out_queries == 0
    assert reads == ["all"]


def test_compacting_leaves_rows_in_the_base_and_copies_none(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.rows.table.BLOCK_ROWS", 8)
    batch = docs(50)
    index.add_many(batch, asked_for(batch, 2))
    index.delete(["d3", "d40"])
    found, full = answers(index), 0
    index.compact()
    for table in (index.engine.live.vectors.table, *index.engine.live.texts.tables):
        blocks = table._blocks[: len(table) // 8]
        assert not any(block.rows.flags.writeable or block.codes.flags.writeable for block in blocks)
        full += len(blocks)
    assert full > 20
    assert answers(index) == found


def resident() -> int:
    """Bytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_memory_is_flat_over_thousands_of_rounds(tmp_path: Path) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("there is no /proc to read the memory from")
    with Index.create(tmp_path / "shop", TOY) as index, Index.open(tmp_path / "shop", TOY) as reader:
        index.add_many(docs(200))

        def rounds(begin: int, count: int) -> int:
            for number in range(begin, begin + count):
                index.add(doc(f"x{number}"), asked("x"))
                index.search("waterproof boots", 5)
                if number % 4 == 0:
                    index.update(doc("d7", number))
                    reader.search("waterproof boots", 5)
                index.delete(f"x{number}")
            gc.collect()
            return resident()

        warm = rounds(0, 2000)
        after = rounds(2000, 4000)
        assert after - warm < 24 * 2**20, f"{warm} bytes grew to {after}"
        assert len(index) == 200
