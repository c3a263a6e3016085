"""Lists, dates and numpy's numbers as metadata, and an index from before there were lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import apsw
import numpy as np
import pytest
from index_samples import ToyEncoder, answers, doc, docs, record
from numpy.typing import NDArray

from incdsi.index import Index, draft, placement
from incdsi.progress import Progress
from incdsi.store.schema import format_version
from incdsi.text.generators import Spans
from tests.engines import Place

Reopen = Callable[..., Index]

# The table as format 1 had it: no kind 'list'.
BEFORE_LISTS = """
DROP TABLE passages;
DROP TABLE metadata;
CREATE TABLE metadata (
    field TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('text', 'number', 'boolean', 'null')),
    value ANY NOT NULL,
    row INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    PRIMARY KEY (field, kind, value, row)
) STRICT, WITHOUT ROWID;
CREATE INDEX metadata_by_row ON metadata (row);
INSERT INTO metadata SELECT key, iif(type = 'text', 'text', iif(type IN ('true', 'false'), 'boolean', 'number')),
    atom, row FROM documents, json_each(documents.metadata);
DELETE FROM migrations WHERE version > 1;
PRAGMA user_version = 1;
"""


def format_of(folder: Path) -> int:
    connection = apsw.Connection(str(folder / "store.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(connection.pragma("user_version"))
    finally:
        connection.close()


def found(index: Index, where: dict[str, object]) -> list[str]:
    return sorted(hit.document_id for hit in index.search("boots", k=100, where=where))


def test_lists_dates_and_numpy_come_back_plain_and_are_found(index: Index, place: Place, reopen: Reopen) -> None:
    index.add(doc("a", tags=["red", "new"], made=date(2024, 5, 1), size=np.int64(42), weight=np.float32(0.5)))
    index.add(doc("b", tags=[], made=datetime(2024, 6, 1, 12, tzinfo=UTC), size=43, weight=1.5))
    index.add(doc("c", tags="red"))
    for one in (index, reopen(place("shop"))):
        assert one.get("a").metadata == {"tags": ("red", "new"), "made": "2024-05-01", "size": 42, "weight": 0.5}
        assert one.get("b").metadata["made"] == "2024-06-01T12:00:00+00:00"
        assert found(one, {"tags": "red"}) == ["a", "c"]
        assert found(one, {"tags": {"all": ["new", "red"]}}) == ["a"]
        assert found(one, {"tags": {"exists": True}}) == ["a", "b", "c"]
        assert found(one, {"made": {"gte": date(2024, 5, 2)}}) == ["b"]
        assert found(one, {"size": {"lt": np.int32(43)}}) == ["a"]
        assert one.verify() == []


@pytest.mark.folder
def test_an_index_from_before_lists_is_read_as_it_is_and_brought_up_to_date_by_a_change(
    index: Index, place: Place, reopen: Reopen
) -> None:
    index.add_many(docs(8))
    expected, german = answers(index), found(index, {"lang": "de"})
    index.close()
    connection = apsw.Connection(str(place("shop") / "store.db"))
    connection.execute(BEFORE_LISTS)
    connection.close()
    old = reopen(place("shop"))
    assert (answers(old), found(old, {"lang": "de"}), old.verify()) == (expected, german, [])
    assert found(old, {"lang": {"contains": "d"}}) == german
    assert format_of(place("shop")) == 1
    old.add(doc("later", tags=["red"]))
    assert format_of(place("shop")) == format_version()
    for one in (old, reopen(place("shop"))):
        assert (found(one, {"tags": "red"}), found(one, {"lang": "de"}), one.verify()) == (["later"], german, [])


@pytest.mark.folder
@pytest.mark.parametrize("writes", [False, True])
def test_two_formats_meet_in_one_folder(index: Index, place: Place, reopen: Reopen, writes: bool) -> None:
    """One who opened the old form goes on when another brings it up to date."""
    index.add_many(docs(4))
    index.close()
    connection = apsw.Connection(str(place("shop") / "store.db"))
    connection.execute(BEFORE_LISTS)
    connection.close()
    reader, writer = reopen(place("shop")), reopen(place("shop"))
    assert found(reader, {"lang": "de"}) == ["d0", "d3"]
    writer.add(doc("later", lang=["de", "en"]))
    writer.close()
    assert found(reader, {"lang": "de"}) == ["d0", "d3", "later"]
    if writes:
        reader.add(doc("last", lang="de"))
        assert found(reader, {"lang": "de"}) == ["d0", "d3", "last", "later"]


class Counting(ToyEncoder):
    """Counts what it is given."""

    texts = 0

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().encode(texts, progress)


@pytest.fixture
def counting(place: Place) -> Iterator[tuple[Index, Counting]]:
    encoder = Counting()
    with Index.create(place("counted"), encoder, generator=Spans()) as index:
        index.add_many(docs(6), {"d3": ["dry feet"]})
        yield index, encoder


def test_an_update_of_metadata_alone_embeds_solves_and_generates_nothing(
    counting: tuple[Index, Counting], monkeypatch: pytest.MonkeyPatch
) -> None:
    index, encoder = counting
    before, version = record(index, "d3"), index.version
    monkeypatch.setattr(placement, "solve_many", lambda *_, **__: pytest.fail("solved"))
    monkeypatch.setattr(draft, "generate_all", lambda *_: pytest.fail("generated"))
    encoder.texts = 0
    for change in (index.update, index.upsert):
        addition = change(replace(before.document, metadata={"lang": "fr", "tags": ["new"]}), ["Dry  feet"])
        assert (addition.status, addition.conflicts, addition.margin) == ("kept", (), math.inf)
    assert encoder.texts == 0
    assert index.version == version + 2
    after = record(index, "d3")
    assert after.document.metadata == {"lang": "fr", "tags": ("new",)}
    assert after.vector.tobytes() == before.vector.tobytes()
    assert [query.text for query in after.queries] == [query.text for query in before.queries]
    assert found(index, {"tags": "new"}) == ["d3"]


def test_an_update_with_a_new_query_embeds_that_query_alone(counting: tuple[Index, Counting]) -> None:
    index, encoder = counting
    before = record(index, "d3")
    encoder.texts = 0
    addition = index.update(replace(before.document, metadata={}), ["where to camp"])
    assert (addition.status, encoder.texts) == ("solved", 1)
    assert set(index.queries("d3")) == {"dry feet", "where to camp"}
    assert record(index, "d3").document.metadata == {}


def test_an_update_of_text_or_title_embeds_and_solves_as_before(counting: tuple[Index, Counting]) -> None:
    index, encoder = counting
    for change in ({"text": "a lake and a boat"}, {"title": "Boats"}):
        encoder.texts = 0
        addition = index.update(replace(index.get("d3"), **change))
        assert encoder.texts > 1
        assert addition.status != "kept"
