"""What a base holds of an index, and what becomes of one that an older version left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from index_samples import TOY, answers, asked, asked_for, doc, docs, vectors

from incdsi.engine.local.live import Live
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
