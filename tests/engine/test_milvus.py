"""The engine on Milvus beside the one in a folder, and what only a server brings: writers, followers, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Semaphore
from typing import Any

import numpy as np
import pytest

from incdsi.documents import Document
from incdsi.engine.addresses import milvus_address, parse
from incdsi.engine.milvus import MilvusEngine
from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.layout import LOG, Names
from incdsi.errors import (
    EncoderMismatch,
    IndexLocked,
    IndexNotFound,
    InvalidInput,
    MissingExtra,
    NotAllowed,
    ServerError,
    ServerUnavailable,
    UnsupportedFormat,
)
from incdsi.index import Index
from incdsi.index.migration import migrate
from tests.engines import Place

sys.path.append(str(Path(__file__).parents[1] / "index"))

from index_samples import MODES, PROBES, TOY, ToyEncoder, asked_for, doc, docs, stored

FILTERS: list[dict[str, Any]] = [
    {"lang": "de"},
    {"number": {"gt": 5}},
    {"number": {"lte": -2}},
    {"number": {"in": [1, 2.0, "3", True, None]}},
    {"number": -2},
    {"even": True},
    {"not": {"lang": "en"}},
    {"number": {"ne": 3}},
    {"lang": {"starts": "d"}},
    {"lang": {"contains": "n"}},
    {"tags": {"any": ["red", "blue"]}},
    {"tags": {"all": ["red", "new"]}},
    {"tags": {"nin": ["red"]}},
    {"size": {"gte": 2**60}},
    {"size": 2**60 + 1},
    {"made": {"gte": "2024-05-01", "lt": "2024-07-01"}},
    {"not": {"made": {"gte": "2024-06-01"}}},
    {"nothing": {"exists": False}},
    {"price": None},
    {"price": {"exists": True}},
    {'odd "name"': "x"},
    {"or": [{"lang": "de"}, {"number": {"lt": 3}}]},
    {"and": [{"not": {"lang": "de"}}, {"or": [{"tags": "new"}, {"number": 4}]}]},
    {"lang": "süd"},
    {},
]


def varied() -> list[Document]:
    kinds: list[dict[str, Any]] = [
        {"lang": "de", "number": 1, "even": False, "tags": ["red"]},
        {"lang": "en", "number": 2.0, "even": True, "tags": ["red", "new"], "price": None},
        {"lang": "süd", "number": "3", "even": 1, "size": 2**60},
        {"number": True, "made": "2024-05-17", "tags": []},
        {"number": None, "made": ["2023-01-01", "2024-06-30"], "price": 4},
        {"number": [4, -2, "x"], "size": 2**60 + 1, "lang": ["de", "en"]},
        {'odd "name"': "x", "lang": "den"},
        {"number": -3, "tags": ["blue", None, 4]},
        {"long": "y" * 70_000, "lang": "de"},
        {},
    ]
    return [doc(f"m{number}", 0, **metadata) for number, metadata in enumerate(kinds)]


def hits(index: Index, **options: Any) -> list[Any]:
    return [
        (probe, mode, hit.document_id, round(hit.score, 5))
        for probe in PROBES
        for mode in MODES
        for hit in index.search(probe, 5, mode=mode, **options)
    ]


@pytest.fixture
def pair(milvus: Place, tmp_path: Path) -> Iterator[tuple[Index, Index]]:
    with Index.create(milvus("shop"), TOY) as there, Index.create(tmp_path / "shop", TOY) as here:
        yield there, here


def vectors(index: Index) -> dict[str, np.ndarray]:
    return dict(zip(*index.engine.vectors(), strict=True))


def test_it_finds_what_a_folder_finds_and_places_where_a_folder_places(pair: tuple[Index, Index]) -> None:
    batch = docs(40)
    for index in pair:
        index.add_many(batch, asked_for(batch, 4))
        index.add(doc("one"), ["where is one"])
        index.update(doc("d3", 1))
        index.delete(["d5", "d6"])
        index.teach("something entirely new", "d7")
        index.attach({"d8": ["river of eight"], "d9": ["river of nine"]})
    there, here = pair
    assert hits(there) == hits(here)
    assert there.version == here.version
    assert there.info().documents == here.info().documents
    ours, theirs = vectors(there), vectors(here)
    assert ours.keys() == theirs.keys()
    assert max(float(np.abs(ours[id] - theirs[id]).max()) for id in ours) < 1e-4
    assert there.verify() == []


def test_a_long_document_is_found_by_the_passages_that_a_folder_finds(pair: tuple[Index, Index], milvus: Place) -> None:
    sections = [f"## About {word}\n" + f"The {word} of this boot is {word}. " * 40 for word in ("wax", "lace", "sole")]
    manual = Document(id="manual", title="Boots", text="\n".join(sections))

    def shown(index: Index) -> list[Any]:
        return [
            (probe, mode, hit.document_id, round(hit.score, 5), hit.passages, hit.snippet)
            for probe in ("the lace", "sole of a boot", "a river at night")
            for mode in MODES
            for hit in index.search(probe, 5, mode=mode, passages=2)
        ]

    for index in pair:
        index.add_many([manual, *docs(6)], {"manual": ["what is it made of"]})
        index.teach("hobnails", "manual")
        index.update(replace(manual, text="\n".join(sections[1:])))
    there, here = pair
    assert shown(there) == shown(here)
    assert any(passages for *_, passages, _ in shown(there))
    there.close()
    with Index.open(milvus("shop"), TOY) as again:
        assert shown(again) == shown(here)
        assert again.verify() == []


def test_a_filter_means_what_it_means_in_a_folder(pair: tuple[Index, Index]) -> None:
    for index in pair:
        index.add_many(varied())
    there, here = pair
    for where in FILTERS:
        assert [one.id for one in there.documents(where)] == [one.id for one in here.documents(where)], where
    for where in FILTERS[:3]:
        assert hits(there, where=where) == hits(here, where=where), where


def test_an_addition_makes_six_calls_and_waits_for_five(milvus: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rivals, violators, its rows in two collections at the same time, the log, whether the lease is still there."""
    monkeypatch.setattr("incdsi.engine.milvus.lease.LIVES_FOR", 3600.0)
    with Index.create(milvus("shop"), TOY, tuning=False) as index:
        index.add_many(docs(40), asked_for(docs(40), 9))  # more preserve rows than one look lists
        connection = index.engine.connection
        inserts, meeting = Connection.insert, Barrier(2, timeout=60)

        def insert(self: Connection, name: str, rows: Any) -> int:
            if "log" not in name:
                meeting.wait()
            return inserts(self, name, rows)

        monkeypatch.setattr(Connection, "insert", insert)
        before = connection.calls.copy()
        index.add(doc("one"), ["where is one"])
        assert connection.calls - before == {"search": 2, "insert": 3, "has": 1}


def test_a_searcher_follows_every_change(milvus: Place) -> None:
    batch = docs(12)
    with Index.create(milvus("shop"), TOY) as writer:
        writer.add_many(batch, asked_for(batch, 4))
        with Index.open(milvus("shop"), TOY) as searcher:
            for change in (
                lambda: writer.add(doc("new")),
                lambda: writer.update(doc("new", 2)),
                lambda: writer.teach("a lamp for the new one", "new"),
                lambda: writer.delete("d3"),
                lambda: writer.tune(),
                lambda: writer.adopt(ToyEncoder(16, 3)),
            ):
                change()
                searcher.engine._follow(STRONG)
                if searcher.engine.view().settings.fingerprint == TOY.fingerprint:
                    assert hits(searcher) == hits(writer)
                assert stored(searcher) == stored(writer)
                assert searcher.engine.verify() == []


def test_a_view_stays_as_it_is_while_documents_come(milvus: Place) -> None:
    batch = docs(12)
    with Index.create(milvus("shop"), TOY) as index:
        index.add_many(batch, asked_for(batch, 4))
        view, query = index.engine.view(), TOY.encode(["about new and old"])[0]
        before = [part.top(5).rows.tolist() for part in (view.learned(query), view.nearest(query))]
        index.add_many([doc(f"new{number}") for number in range(6)])
        index.delete("d3")
        for part, rows in zip((view.learned(query), view.nearest(query)), before, strict=True):
            assert part.top(5).rows.tolist() == rows
            likely = part.likely(5).rows
            assert (part.score(likely) <= part.at_most(likely)).all()


def test_one_writes_at_a_time_and_the_next_begins_where_it_ended(milvus: Place) -> None:
    with Index.create(milvus("shop"), TOY) as first, Index.open(milvus("shop"), TOY) as second:
        first.add(doc("a"))
        with pytest.raises(IndexLocked, match="another process is writing"):
            second.add(doc("b"))
        first.close()
        second.add(doc("b"))
        assert second.version == 2
        assert sorted(one.id for one in second.documents()) == ["a", "b"]


def test_a_writer_that_was_taken_for_dead_is_not_believed(milvus: Place) -> None:
    with Index.create(milvus("shop"), TOY) as paused, Index.open(milvus("shop"), TOY) as next_one:
        paused.add(doc("a"))
        paused.engine._lease._stop()  # no sign of life any more, as in a process that is stopped
        next_one.add(doc("b"))
        with pytest.raises(IndexLocked, match="took over"):
            paused.add(doc("late"))
        next_one.add(doc("c"))
        next_one.close()
        with Index.open(milvus("shop"), TOY) as again:
            assert [one.id for one in again.documents()] == ["a", "b", "c"]
            assert again.verify() == []
        paused.add(doc("late"))  # as a writer again, after the others
        assert [one.id for one in paused.documents()] == ["a", "b", "c", "late"]


@pytest.mark.parametrize("stage", ["documents", "queries", "log"])
def test_what_was_stopped_on_its_way_was_never_there_and_is_swept_away(
    milvus: Place, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    with Index.create(milvus("shop"), TOY) as index:
        index.add_many(docs(3))
        before = stored(index)
        insert = Connection.insert

        def fail(self: Connection, name: str, rows: Any) -> int:
            if stage in name and rows[0].get("kind", 0) == 0:
                raise ServerUnavailable("gone")
            return insert(self, name, rows)

        with monkeypatch.context() as patch:
            patch.setattr(Connection, "insert", fail)
            with pytest.raises(ServerUnavailable):
                index.add(doc("lost"))
        assert stored(index) == before
        index.add(doc("kept"))
        server = index.engine._server
        left = server.connection.query(server.names.documents, "key >= 0", ["row"], STRONG)
        assert sorted(row["row"] for row in left) == [1, 2, 3, 4]
        assert [one.id for one in index.documents()] == ["d0", "d1", "d2", "kept"]


def test_compacting_leaves_no_row_of_what_was_deleted(milvus: Place) -> None:
    with Index.create(milvus("shop"), TOY) as index:
        index.add_many(docs(6))
        index.update(doc("d1", 1))
        index.delete("d2")
        before = hits(index)
        index.compact()
        server = index.engine._server
        assert len({row["key"] for row in server.connection.query(server.names.documents, "key >= 0", [], STRONG)}) == 5
        assert hits(index) == before
    with Index.open(milvus("shop"), TOY) as again:
        assert hits(again) == before


def test_lite_keeps_few_rows_where_each_search_would_convert_them_one_by_one(
    pair: tuple[Index, Index], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.engine.milvus.connection.UNSETTLED", 30)
    batch = docs(12)
    for index in pair:
        index.add_many(batch, asked_for(batch, 4))
        index.update(doc("d3", 1))
        index.delete("d5")
    there, here = pair
    connection = there.engine.connection
    assert (connection.calls["flush"] > 0) == connection.address.lite
    assert connection._unsettled[there.engine._server.names.queries] <= 30 or not connection.address.lite
    assert hits(there) == hits(here)
    assert all(np.array_equal(vector, vectors(here)[id]) for id, vector in vectors(there).items())


def test_a_writer_that_wrote_much_has_it_sealed_when_it_closes(milvus: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, many, sealed in (("few", 1000, False), ("many", 20, True)):
        monkeypatch.setattr("incdsi.engine.milvus.connection.MANY", many)
        index = Index.create(milvus(name), TOY)
        index.add_many(docs(12), asked_for(docs(12), 4))
        before, connection = hits(index), index.engine.connection
        index.close()
        assert (connection.calls["flush"] > 0) == sealed
        with Index.open(milvus(name), TOY) as again:
            assert hits(again) == before


def test_an_index_moves_to_milvus_and_back(milvus: Place, tmp_path: Path) -> None:
    batch = docs(30)
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(batch, asked_for(batch, 4))
        index.delete("d4")
        index.teach("something entirely new", "d7")
        before = hits(index)
    moved = migrate(tmp_path / "shop", milvus("moved"), encoder=TOY)
    assert (moved.documents, moved.copied) == (29, 29)
    assert moved.searches > 20
    with Index.open(milvus("moved"), TOY) as there:
        assert hits(there) == before
    migrate(milvus("moved"), tmp_path / "back", encoder=TOY)
    with Index.open(tmp_path / "back", TOY) as back:
        assert hits(back) == before
        assert back.verify() == []
    with pytest.raises(InvalidInput, match="another index"):
        migrate(tmp_path / "shop", milvus("moved"), encoder=TOY)


def test_a_migration_that_was_stopped_goes_on(milvus: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(docs(10))
    monkeypatch.setattr("incdsi.engine.copying.PORTION", 4)

    def stop(done: int, _: int) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(tmp_path / "shop", milvus("moved"), encoder=TOY, progress=stop)
    again = migrate(tmp_path / "shop", milvus("moved"), encoder=TOY)
    assert (again.documents, again.copied) == (10, 2)


def test_a_backup_is_an_index_in_a_folder(milvus: Place, tmp_path: Path) -> None:
    with Index.create(milvus("shop"), TOY) as index:
        index.add_many(docs(5))
        index.backup(tmp_path / "copy")
        with Index.open(tmp_path / "copy", TOY) as copy:
            assert hits(copy) == hits(index)


# Refusals


def test_another_encoder_is_refused(milvus: Place) -> None:
    Index.create(milvus("shop"), TOY).close()
    with pytest.raises(EncoderMismatch, match="open it with that one"):
        Index.open(milvus("shop"), ToyEncoder(24, 9))


def test_a_name_without_an_index_is_refused(milvus: Place) -> None:
    with pytest.raises(IndexNotFound, match="no index at milvus"):
        Index.open(milvus("fresh nothing"), TOY)


def test_collections_of_somebody_else_and_of_a_newer_format_are_refused(milvus: Place) -> None:
    for name, fields, says in (
        ("fresh theirs", {"kind": LOG["kind"]}, "not made by incdsi"),
        ("fresh newer", {"incdsi_9": LOG["kind"]}, "upgrade incdsi"),
    ):
        address = parse(milvus(name))
        connection = Connection(address)
        connection.create(Names(address.name).log, fields, 2)
        connection.close()
        with pytest.raises(UnsupportedFormat, match=says):
            Index.open(milvus(name), TOY)


def test_a_server_that_is_too_old_is_refused(milvus: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.engine.milvus.connection.OLDEST", (99, 0, 0))
    monkeypatch.setattr("incdsi.engine.addresses.Address.lite", False)
    with pytest.raises(UnsupportedFormat, match=r"is too old; incdsi needs 99\.0\.0 or newer"):
        Index.open(milvus("shop"), TOY)


def test_nobody_at_the_address_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.engine.milvus.connection.CONNECTS_IN", 0.5)
    with pytest.raises(ServerUnavailable, match=r"no Milvus answers at milvus://127\.0\.0\.1:9/shop"):
        Index.open("milvus://127.0.0.1:9/shop", TOY)


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ("milvus://127.0.0.1:19530", "names no index"),
        ("milvus://127.0.0.1:19530/a/b", "no address of Milvus"),
        ("milvus://127.0.0.1:port/shop", "no address of Milvus"),
        ("milvus://me:secret@127.0.0.1/shop", "INCDSI_MILVUS_TOKEN"),
        ("milvus+lite:///tmp/file/shop", "three slashes"),
    ],
)
def test_what_is_no_address_is_refused(address: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        parse(address)


def test_a_key_and_tls_come_from_the_environment_and_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INCDSI_MILVUS_TOKEN", "me:secret")
    monkeypatch.setenv("INCDSI_MILVUS_TLS", "/etc/ca.pem")
    address = parse("milvus://db.example:443/shop")
    assert (address.uri, address.token, address.certificate) == ("https://db.example:443", "me:secret", "/etc/ca.pem")
    assert "secret" not in f"{address} {address!r}"


@pytest.mark.parametrize("place", ["milvus://h:1/n", "milvus+lite:///a/b.db/n"])
def test_an_address_that_was_a_path_is_one_again(place: str) -> None:
    assert milvus_address(Path(place)) == milvus_address(place) == place
    assert milvus_address("folder/milvus") is None


def test_nothing_imports_the_client_of_milvus_before_it_is_used() -> None:
    code = "import sys, json, incdsi.cli, incdsi.index, incdsi.index.migration; print(json.dumps(sorted(sys.modules)))"
    found = json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
    assert not {name for name in found if name.split(".")[0] in ("pymilvus", "grpc", "milvus_lite")}


def test_without_the_client_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pymilvus", None)
    with pytest.raises(MissingExtra, match=r"incdsi\[milvus\]"):
        MilvusEngine.open("milvus://127.0.0.1:9/shop")


def test_what_a_server_refuses_is_told_in_its_words(milvus: Place) -> None:
    with Index.create(milvus("shop"), TOY) as index, pytest.raises(ServerError, match="refused"):
        index.engine.connection.query(Names(parse(milvus("shop")).name).log, "no such thing (", [], STRONG)


@pytest.mark.parametrize(
    ("server_says", "error", "says"),
    [
        ("failed to query: collection not loaded[collection=470527135742951827]", ServerUnavailable, "is not ready"),
        ("fail to search on QueryNode 2: channel not available", ServerUnavailable, "is not ready"),
        ("Retry timeout: 30s, StatusCode.UNAVAILABLE, connection refused", ServerUnavailable, "no Milvus answers"),
        ("auth check failure, please check username and password are correct", NotAllowed, "wants a key"),
        ("the author of this field is unknown", ServerError, "refused: the author"),
    ],
)
def test_what_goes_wrong_at_the_server_is_one_sentence_that_says_what_to_do(
    milvus: Place, monkeypatch: pytest.MonkeyPatch, server_says: str, error: type[ServerError], says: str
) -> None:
    from pymilvus import MilvusException

    def fail(*_: Any, **__: Any) -> None:
        raise MilvusException(message=server_says)

    with Index.create(milvus("shop"), TOY) as index:
        monkeypatch.setattr(index.engine.connection._client, "query", fail)
        with pytest.raises(error, match=says):
            index.engine.connection.query("any", "key > 0", [], STRONG)


def test_each_connection_is_its_own_and_looks_for_a_lost_server_every_few_seconds(milvus: Place) -> None:
    with Index.create(milvus("shop"), TOY) as first, Index.open(milvus("shop"), TOY) as second:
        first.close()
        assert second.engine.connection.has(Names(parse(milvus("shop")).name).log)
        options = second.engine.connection._client._handler._grpc_options
        assert options["grpc.max_reconnect_backoff_ms"] <= 5000


def test_a_writer_that_cannot_show_a_sign_of_life_says_so_in_the_log_once(
    milvus: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    beats = Semaphore(0)

    def fail(*_: Any) -> None:
        beats.release()
        raise ServerUnavailable("nobody answers")

    with Index.create(milvus("shop"), TOY) as index:
        index.add(doc("a"))
        with monkeypatch.context() as patch, caplog.at_level("WARNING", "incdsi"):
            patch.setattr("incdsi.engine.milvus.log.Log.beat", fail)
            for _ in range(3):
                assert beats.acquire(timeout=60)
        said = [one.getMessage() for one in caplog.records if "sign of life" in one.getMessage()]
        assert said == ["no sign of life as a writer, trying again: nobody answers"]
        index.add(doc("b"))
