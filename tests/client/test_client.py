"""One suite of behaviours, run over an index in a folder and over the same one behind a server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from incdsi.client import AsyncRemoteIndex, RemoteIndex
from incdsi.documents import Document, Taught
from incdsi.errors import (
    DuplicateDocument,
    InvalidInput,
    NotAllowed,
    ServerError,
    ServerUnavailable,
    TooLarge,
    UnknownDocument,
    VersionConflict,
)
from incdsi.index import Index
from tests.index.index_samples import asked, asked_for, docs
from tests.server.servers import KEY, READ_KEY, make, running

Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve(key=...)` runs a server of an empty index; its address."""
    with ExitStack() as stack:

        def go(**settings: Any) -> str:
            folder = tmp_path / "shop"
            return stack.enter_context(running(stack.enter_context(make(folder)), folder, **settings))

        yield go


@pytest.fixture(params=["folder", "server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, serve: Serve) -> Iterator[Any]:
    if request.param == "folder":
        with make(tmp_path / "here") as made:
            yield made
    else:
        with Index.open(serve()) as opened:
            yield opened


def test_adding_getting_and_counting(index: Any) -> None:
    some = docs(4)
    addition = index.add(some[0], asked("d0"))
    assert (addition.document_id, addition.conflicts) == ("d0", ())
    assert {"encode", "solve", "commit"} <= set(addition.seconds)
    told: list[tuple[int, int]] = []
    additions = index.add_many(some[1:], asked_for(some[1:]), progress=lambda *done: told.append(done))
    assert [one.document_id for one in additions] == ["d1", "d2", "d3"]
    assert told[-1] == (3, 3)
    assert len(index) == 4
    assert "d2" in index
    assert "gone" not in index
    assert 7 not in index
    assert index.get("d3") == some[3]
    assert index.queries("d0") == asked("d0")
    assert sorted(one.id for one in index.documents()) == ["d0", "d1", "d2", "d3"]


def test_a_document_added_again_with_its_queries_is_taught_again(index: Any) -> None:
    index.add_many(docs(6), asked_for(docs(6)))
    index.teach("where the bears are", "d4")
    document, queries = index.get("d4"), index.queries("d4")
    assert [text for text in queries if isinstance(text, Taught)] == ["where the bears are"]
    for again in (index.add, index.upsert, lambda document, queries: index.add_many([document], {"d4": queries})):
        index.delete("d4")
        again(document, queries)
        assert [(text, type(text)) for text in index.queries("d4")] == [(text, type(text)) for text in queries]


def test_searching(index: Any) -> None:
    index.add_many(docs(12), asked_for(docs(12)))
    hits = index.search("waterproof boots", k=5, where={"lang": "en", "number": {"in": (1, 2, 4, 5)}})
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    assert all(hit.document == docs(12)[int(hit.document_id[1:])] for hit in hits)
    assert all(hit.score == pytest.approx(hit.learned + hit.lexical, rel=1e-5) for hit in hits)
    assert index.search("tent", mode="lexical")[0].learned is None
    assert index.search("half \ud83d a pair")


def test_changing_teaching_and_deleting(index: Any) -> None:
    index.add_many(docs(6), asked_for(docs(6)))
    index.update(Document(id="d0", text="a new text", title="New"), ["and a query"])
    assert index.get("d0").title == "New"
    assert index.queries("d0") == [*asked("d0"), "and a query"]
    index.upsert(Document(id="d1", text="another"))
    index.upsert(Document(id="../x?", text="an id like a path"))
    assert index.get("../x?").text == "an id like a path"
    assert index.teach("where the bears are", "d4").document_id == "d4"
    assert index.search("where the bears are")[0].document_id == "d4"
    assert index.delete("d4") == 1
    assert index.delete(where={"even": True}) == 1  # d2: the others lost their metadata
    assert len(index) == 5


def test_deleting_several_at_once(index: Any) -> None:
    index.add_many(docs(4))
    assert index.delete(["d0", "d2"]) == 2
    assert [document.id for document in index.documents()] == ["d1", "d3"]
    with pytest.raises(UnknownDocument):
        index.delete(iter(["d1", "nobody"]))
    assert len(index) == 2


def test_versions(index: Any) -> None:
    before = index.version
    index.add(docs(1)[0], if_version=before)
    assert index.version > before
    for change in (
        lambda: index.add(docs(2)[1], if_version=before),
        lambda: index.update(docs(1)[0], if_version=before),
        lambda: index.upsert(docs(1)[0], if_version=before),
        lambda: index.delete("d0", if_version=before),
        lambda: index.teach("x", "d0", if_version=before),
    ):
        with pytest.raises(VersionConflict):
            change()


def test_the_same_errors(index: Any) -> None:
    index.add(docs(1)[0])
    for error, change in (
        (DuplicateDocument, lambda: index.add(docs(1)[0])),
        (DuplicateDocument, lambda: index.add_many([docs(2)[1], docs(1)[0]])),
        (UnknownDocument, lambda: index.get("gone")),
        (UnknownDocument, lambda: index.queries("gone")),
        (UnknownDocument, lambda: index.update(Document(id="gone", text="x"))),
        (UnknownDocument, lambda: index.delete("gone")),
        (UnknownDocument, lambda: index.teach("x", "gone")),
        (InvalidInput, lambda: index.search("")),
        (InvalidInput, lambda: index.search("x", k=0)),
        (InvalidInput, lambda: index.search("x", mode="best")),
        (InvalidInput, lambda: index.search("x", where={"a": {"near": 1}})),
        (InvalidInput, lambda: index.search("x", where={"a": float("nan")})),
        (InvalidInput, lambda: index.teach(" ", "d0")),
        (InvalidInput, lambda: index.delete()),
        (InvalidInput, lambda: index.add(Document(id="s", text="\ud800"))),
        (InvalidInput, lambda: index.add(Document(id="q", text="x"), "a text instead of a list")),
    ):
        with pytest.raises(error):
            change()
    assert len(index) == 1


def test_info(index: Any) -> None:
    index.add_many(docs(3), asked_for(docs(3)))
    info = index.info()
    assert (info.documents, info.dimension, info.version) == (3, 24, index.version)
    assert info.hyperparameters.weights.retrieve == 0.3
    assert info.quality == {}


def test_both_find_the_same_with_the_same_scores(tmp_path: Path, serve: Serve) -> None:
    with make(tmp_path / "here") as here, Index.open(serve()) as there:
        for one in (here, there):
            one.add_many(docs(15), asked_for(docs(15)))
            one.teach("a quiet place", "d3")
        for mode in ("fused", "learned", "lexical"):
            assert here.search("snow on the lake", 15, mode=mode) == there.search("snow on the lake", 15, mode=mode)
        assert here.info().to_json() | {"version": 0} == there.info().to_json() | {"version": 0}


def test_many_portions_and_many_queries(serve: Serve) -> None:
    with RemoteIndex(serve()) as index:
        some = [Document(id=str(number), text=f"rope {number}") for number in range(300)]
        assert len(index.add_many(some)) == 300
        assert [hits[0].document_id for hits in index.search_many(["rope 7", "rope 8"], 1)] == ["7", "8"]
        with pytest.raises(InvalidInput, match="if_version"):
            index.add_many(some, if_version=3)


def test_keys_and_limits_come_back_as_errors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(key=KEY, read_key=READ_KEY, query_characters=10)
    with pytest.raises(NotAllowed, match="found none"), Index.open(url) as index:
        index.search("x")
    with Index.open(url, key=READ_KEY) as index:
        assert index.search("x") == []
        with pytest.raises(NotAllowed, match="read-only"):
            index.add(docs(1)[0])
        with pytest.raises(TooLarge):
            index.search("x" * 11)
    monkeypatch.setenv("INCDSI_KEY", KEY)
    with Index.open(url) as index:
        assert index.add(docs(1)[0]).document_id == "d0"
    assert KEY not in repr(index)


class Page(BaseHTTPRequestHandler):
    """What a proxy in between may answer."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>Sign in</h1>")

    def log_message(self, *_: object) -> None:
        pass


def test_an_answer_that_is_not_incdsis_is_one_sentence() -> None:
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        for ask in (len, lambda index: list(index.documents())):
            with RemoteIndex(url, patience=0) as index, pytest.raises(ServerError, match="an answer of incdsi"):
                ask(index)
        server.shutdown()


def test_a_server_that_is_away_is_one_sentence_for_documents_too() -> None:
    async def all_of(index: AsyncRemoteIndex[Any]) -> list[Document]:
        return [document async for document in index.documents()]

    with RemoteIndex("http://127.0.0.1:9", patience=0) as index, pytest.raises(ServerUnavailable):
        list(index.documents())
    with pytest.raises(ServerUnavailable):
        asyncio.run(all_of(AsyncRemoteIndex("http://127.0.0.1:9", patience=0)))


def test_addresses_that_cannot_be_right() -> None:
    for url in ("http://user:secret@127.0.0.1:1", "http://127.0.0.1:port", "http://"):
        with pytest.raises(InvalidInput):
            Index.open(url)
    with pytest.raises(InvalidInput, match="its own encoder"):
        Index.open("http://127.0.0.1:1", "some-encoder")
    with RemoteIndex("http://127.0.0.1:1", patience=0) as index, pytest.raises(ServerUnavailable, match="running"):
        len(index)


def test_the_same_for_asyncio(serve: Serve) -> None:
    async def go(url: str) -> None:
        async with AsyncRemoteIndex(url, read_info=dict) as index:
            await index.add(docs(1)[0], asked("d0"))
            await index.add_many(docs(5)[1:], {"d2": ["a question"]})
            hits = await asyncio.gather(*(index.search("boots", 3) for _ in range(4)))
            assert len({tuple(hit.document_id for hit in some) for some in hits}) == 1
            assert len((await index.search_many(["a", "b"]))[1]) == 5
            await index.update(Document(id="d0", text="new"))
            await index.upsert(Document(id="d9", text="nine"))
            await index.teach("the ninth", "d9")
            assert await index.delete("d1") == 1
            assert (await index.get("d0")).text == "new"
            assert [(text, type(text)) for text in await index.queries("d9")] == [("the ninth", Taught)]
            assert await index.contains("d9")
            assert not await index.contains("d1")
            assert await index.count() == 5
            assert [one.id async for one in index.documents()][-1] == "d9"
            assert (await index.info())["documents"] == 5
            with pytest.raises(VersionConflict):
                await index.delete("d9", if_version=await index.version() - 1)

    asyncio.run(go(serve()))
