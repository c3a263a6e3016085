"""What a base holds of an index, and what becomes of one that an older version left."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_samples import PROBES, TOY, answers, asked, asked_for, doc, docs, vectors

from incdsi.engine.local.live import Live
from incdsi.errors import DamagedBase
from incdsi.index import Index
from incdsi.store import Store

pytestmark = pytest.mark.folder


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An index of generated and asked queries, closed with a base."""
    batch = docs(30)
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(batch, asked_for(batch, 2))
        index.update(doc("d6", 1))
        index.teach("who sells a lantern?", "d3")
        index.delete("d4")
        index.compact()
    return tmp_path / "shop"


def arrays(path: Path) -> dict[str, Any]:
    with Store.open(path, writer=False) as store:
        base = store.base()
        assert base is not None
        return {name: np.array(base.arrays[name]) for name in base.arrays}


def written_as_before(self: Live) -> dict[str, Any]:
    """The arrays of a base that holds every preserve row beside the texts."""
    slots = np.array(sorted(self._slots.values()), dtype=np.intp)
    owners, rows, own_scores = self.vectors.preserve_arrays()
    new = {name: array for name, array in now(self).items() if not name.startswith("preserve.")}
    return {**new, "owners": np.searchsorted(slots, owners), "preserve_rows": rows, "own_scores": own_scores}


now = Live.to_arrays
ROWS = ("vectors", "texts.vectors", "texts.asked.vectors")


def damage(path: Path, name: str) -> None:
    """Turn a bit of every row of that array of the base."""
    (file,) = path.glob("base.*")
    content = bytearray(file.read_bytes())
    rows = arrays(path)[name]
    first = content.index(rows.tobytes())
    for row in range(len(rows)):
        content[first + rows.strides[0] * row + 5] ^= 1
    file.write_bytes(content)


def test_a_base_holds_no_embedding_twice(shop: Path) -> None:
    base = arrays(shop)
    assert len(base["preserve.owners"]) > 60
    assert base["preserve.rows"].shape == (0, TOY.dimension)
    assert set(base["preserve.tables"].tolist()) == {1, 2}  # texts, and what was asked


def test_a_base_of_before_is_read_by_readers_and_replaced_by_the_next_writer(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Index.open(shop, TOY) as index:
        found = answers(index)
        index.add(doc("x"), asked("x"))
        placed = vectors(index)["x"]
        index.delete("x")
        with monkeypatch.context() as patch:
            patch.setattr(Live, "to_arrays", written_as_before)
            index.engine._refresh_base()
    assert "preserve_rows" in arrays(shop)
    with Index.open(shop, TOY) as index:
        assert not index.engine.live.outdated_base
        assert answers(index) == found
    assert "preserve_rows" in arrays(shop)
    with Index.open(shop, TOY) as index:
        index.add(doc("x"), asked("x"))
        assert index.engine.live.outdated_base
        assert vectors(index)["x"] == placed
        index.delete("x")
        assert answers(index) == found
    assert "preserve_rows" not in arrays(shop)
    with Index.open(shop, TOY) as index:
        index.add(doc("x"), asked("x"))
        assert not index.engine.live.outdated_base
        assert vectors(index)["x"] == placed


@pytest.mark.parametrize("name", ROWS)
def test_where_rows_of_a_base_are_damaged_a_search_answers_by_the_store(
    shop: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Index.open(shop, TOY) as index:
        found, several, known = answers(index), index.search_many(PROBES), index.info()
    damage(shop, name)
    with Index.open(shop, TOY) as index:
        assert not caplog.records
        assert answers(index) == found
        assert [record.message for record in caplog.records] == [
            f"{shop}: the base is damaged, so everything is read from the store, which takes longer; "
            "`incdsi compact` rebuilds it"
        ]
    with Index.open(shop, TOY) as index:
        assert index.search_many(PROBES) == several
    with Index.open(shop, TOY) as index:
        assert index.info() == known
    with Index.open(shop, TOY) as index:
        assert len(index.engine.vectors()[0]) == len(index)
    assert any(name in problem for problem in Store.open(shop, writer=False).verify())


@pytest.mark.parametrize("name", ROWS)
def test_where_rows_of_a_base_are_damaged_a_change_is_made_whole_or_asked_for_again(shop: Path, name: str) -> None:
    shutil.copytree(shop, other := shop.with_name("other"))
    with Index.open(other, TOY) as index:
        index.add(doc("x"), asked("x"))
        index.update(doc("d7", 2))
        index.delete("d8")
        expected, found = vectors(index), answers(index)
    damage(shop, name)
    with Index.open(shop, TOY) as index:
        for change in (
            lambda: index.add(doc("x"), asked("x")),
            lambda: index.update(doc("d7", 2)),
            lambda: index.delete("d8"),
        ):
            made_at_last(index, change)
        assert vectors(index) == expected
        assert answers(index) == found
        index.compact()
    with Store.open(shop, writer=False) as store:
        assert store.verify() == []
    with Index.open(shop, TOY) as index:
        assert answers(index) == found


def made_at_last(index: Index, change: Callable[[], object]) -> None:
    """At the second time at the latest; a change that was refused was not made."""
    before = index.version
    try:
        change()
    except DamagedBase:
        assert index.version == before
        change()
    assert index.version > before


def test_compacting_makes_a_damaged_base_anew(shop: Path) -> None:
    with Index.open(shop, TOY) as index:
        found = answers(index)
    for name in ROWS:
        damage(shop, name)
    with Index.open(shop, TOY) as index:
        index.compact()
        assert answers(index) == found
    with Store.open(shop, writer=False) as store:
        assert store.verify() == []


def test_a_writer_that_met_damage_leaves_a_sound_base_when_it_closes(shop: Path) -> None:
    damage(shop, "vectors")
    with Index.open(shop, TOY) as index:
        made_at_last(index, lambda: index.delete("d8"))
        found = answers(index)
    with Store.open(shop, writer=False) as store:
        assert store.verify() == []
    with Index.open(shop, TOY) as index:
        assert answers(index) == found
