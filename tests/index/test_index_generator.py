"""The generator an index was filled with is the one it goes on with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from index_samples import TOY, ids, record

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.index import Index
from incdsi.store import Store
from incdsi.text.generators import Spans

pytestmark = pytest.mark.folder

LONG = " ".join(f"Sentence {number} tells of thing{number} and its colour{number}." for number in range(12))


def generated(index: Index, id: str) -> int:
    return sum(query.generated for query in record(index, id).queries)


def one(id: str) -> Document:
    return Document(id=id, text=LONG.replace("tells", f"{id} tells"))


def shouting(document: Document) -> list[str]:
    return [document.id.upper()]


@pytest.mark.parametrize("limit", [2, 6, 9])
def test_opening_again_restores_the_generator(tmp_path: Path, limit: int) -> None:
    with Index.create(tmp_path / "shop", TOY, generator=Spans(limit=limit)) as index:
        index.add(one("a"))
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(one("b"))
        index.update(replace(one("a"), text=one("b").text))
        assert [generated(index, id) for id in "ab"] == [limit, limit]


def test_a_generator_of_ones_own_is_asked_for_when_a_change_needs_it(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY, generator=shouting) as index:
        index.add(one("a"))
    with Index.open(tmp_path / "shop", TOY) as index:
        version = index.version
        assert ids(index, "thing3") == ["a"]
        for change, document in ((index.add, one("b")), (index.update, replace(one("a"), text="another text"))):
            with pytest.raises(InvalidInput, match=r"shouting.*; open the index with generator="):
                change(document)
        assert index.version == version
        index.update(replace(one("a"), metadata={"new": True}))
        index.teach("something else", "a")
        index.attach({"a": ["and more"]})
        index.delete("a")
    with Index.open(tmp_path / "shop", TOY, generator=shouting) as index:
        version = index.version
        index.add(one("b"))
        assert index.version == version + 1
        assert [query.text for query in record(index, "b").queries] == ["B"]


def test_another_generator_that_is_given_is_remembered_with_the_first_change_it_makes(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add(one("a"))
    with Index.open(tmp_path / "shop", TOY, generator=Spans(limit=3)):
        pass
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(one("b"))
    with Index.open(tmp_path / "shop", TOY, generator=Spans(limit=3)) as index:
        index.add(one("c"))
        assert len(ids(index, "thing3")) == 3
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(one("d"))
        assert [generated(index, id) for id in "abcd"] == [6, 6, 3, 3]
        assert index.verify() == []


def test_an_index_that_remembers_none_has_the_default(tmp_path: Path) -> None:
    Index.create(tmp_path / "shop", TOY, generator=Spans(limit=3)).close()
    with Store.open(tmp_path / "shop", writer=True) as store, store.transaction() as tx:
        tx.set_setting("generator", None)
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(one("a"))
        assert generated(index, "a") == 6


def test_a_generator_of_a_later_version_is_told_by_its_name(tmp_path: Path) -> None:
    Index.create(tmp_path / "shop", TOY).close()
    with Store.open(tmp_path / "shop", writer=True) as store, store.transaction() as tx:
        tx.set_setting("generator", {"name": "oracle", "depth": 3})
    with Index.open(tmp_path / "shop", TOY) as index, pytest.raises(InvalidInput, match="oracle"):
        index.add(one("a"))


def test_a_seq2seq_generator_is_restored_by_its_model_and_its_sampling(tmp_path: Path, tiny_t5: Path) -> None:
    from incdsi.text.generators.seq2seq import Sampling, Seq2Seq

    asking = Seq2Seq(tiny_t5, sampling=Sampling(count=3, max_new_tokens=6))
    with Index.create(tmp_path / "shop", TOY, generator=asking) as index:
        index.add(one("a"))
        expected = asking(one("b"))
    with Index.open(tmp_path / "shop", TOY) as index:
        index.add(one("b"))
        known = {query.text for query in record(index, "a").queries}
        found = [query.text for query in record(index, "b").queries if query.generated]
        assert found == ([text for text in expected if text not in known] or expected)
