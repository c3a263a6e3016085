"""What only a client does: addresses, keys, patience, portions."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from threading import Semaphore, Thread
from typing import Any
from unittest import mock

import pytest

from incdsi.client import AsyncRemoteIndex, RemoteIndex
from incdsi.documents import Document
from incdsi.errors import InvalidInput, NotAllowed, ServerError, ServerUnavailable, TooLarge
from incdsi.index import Index
from incdsi.server.answers import Answers
from tests.client.conftest import Serve
from tests.index.index_samples import asked_for, docs
from tests.server.servers import KEY, READ_KEY, make


def test_both_find_the_same_with_the_same_scores(tmp_path: Path, serve: Serve) -> None:
    with make(tmp_path / "here") as here, Index.open(serve()) as there:
        for one in (here, there):
            one.add_many(docs(15), asked_for(docs(15)))
            one.teach("a quiet place", "d3")
        for mode in ("fused", "learned", "lexical"):
            assert here.search("snow on the lake", 15, mode=mode) == there.search("snow on the lake", 15, mode=mode)
        assert asdict(here.info()) | {"version": 0} == asdict(there.info()) | {"version": 0}


def test_many_documents_go_in_portions_and_together_on_request(serve: Serve) -> None:
    with RemoteIndex(serve(batch=299)) as index:
        some = [Document(id=str(number), text=f"rope {number}") for number in range(300)]
        told: list[tuple[int, int]] = []
        assert len(index.add_many(some, progress=lambda *done: told.append(done))) == 300
        assert told == [(256, 300), (300, 300)]
        with pytest.raises(TooLarge, match="299"):
            index.add_many(some, whole=True)
        with pytest.raises(TooLarge, match="299"):
            index.add_many(some, if_version=index.version)


def test_keys_and_limits_come_back_as_errors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(key=KEY, read_key=READ_KEY, query_characters=10)
    with pytest.raises(NotAllowed, match="a key is required"), Index.open(url) as index:
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
    assert repr(index) == f"RemoteIndex({url!r})"


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
            with RemoteIndex(url, patience=0) as index, pytest.raises(ServerError, match="not from an incdsi server"):
                ask(index)
        server.shutdown()


def test_a_server_that_is_away_is_one_sentence_for_documents_too() -> None:
    async def all_of(index: AsyncRemoteIndex) -> list[Document]:
        return [document async for document in index.documents()]

    with RemoteIndex("http://127.0.0.1:9", patience=0) as index, pytest.raises(ServerUnavailable):
        list(index.documents())
    with pytest.raises(ServerUnavailable):
        asyncio.run(all_of(AsyncRemoteIndex("http://127.0.0.1:9", patience=0)))


class Older(BaseHTTPRequestHandler):
    """A server from before long documents had passages: it refuses a field it does not know."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        document = {"id": "a", "title": "", "text": "boots", "metadata": {}}
        hit = {"rank": 1, "score": 2.0, "learned": 1.0, "lexical": 1.0, "document": document}
        known = asked.keys() <= {"query", "queries", "k", "where", "mode"}
        problem = {"error": "InvalidInput", "detail": "passages: extra inputs are not permitted"}
        content = json.dumps({"hits": [hit]} if known else problem).encode()
        self.send_response(200 if known else 422)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


def test_an_older_server_answers_what_it_knows_and_refuses_what_it_does_not() -> None:
    with HTTPServer(("127.0.0.1", 0), Older) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with RemoteIndex(f"http://127.0.0.1:{server.server_port}", patience=0) as index:
            (hit,) = index.search("boots", 3, {"lang": "en"})
            assert (hit.document.text, hit.passages, hit.snippet.text, hit.nearest) == ("boots", (), "", None)
            with pytest.raises(InvalidInput, match="passages"):
                index.search("boots", passages=2)
        server.shutdown()


def test_a_write_is_waited_for_however_long_it_takes_and_made_once(serve: Serve) -> None:
    url, tries, add_many, once = serve(), Semaphore(0), Index.add_many, Answers.once

    def slow(*args: Any, **kwargs: Any) -> Any:
        for _ in range(3):  # until it is asked for the third time
            assert tries.acquire(timeout=60)
        return add_many(*args, **kwargs)

    async def counted(*args: Any) -> Any:
        tries.release()
        return await once(*args)

    async def added(document: Document) -> None:
        async with AsyncRemoteIndex(url, timeout=0.3, patience=0) as index:
            assert (await index.add(document)).document_id == document.id

    first, second = docs(2)
    with mock.patch.object(Index, "add_many", slow), mock.patch.object(Answers, "once", counted):
        with RemoteIndex(url, timeout=0.3, patience=0) as index:
            assert index.add(first).document_id == first.id
        asyncio.run(added(second))
    with RemoteIndex(url) as index:
        assert (len(index), index.version) == (2, 2)


class Silent(BaseHTTPRequestHandler):
    """Takes requests and answers none."""

    def handle(self) -> None:
        time.sleep(1)

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_that_answers_nothing_at_all_is_not_waited_for() -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Silent) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with RemoteIndex(f"http://127.0.0.1:{server.server_port}", timeout=0.2, patience=0) as index:
            for ask in (lambda: index.search("boots"), lambda: index.add(docs(1)[0])):
                with pytest.raises(ServerUnavailable, match=r"no answer within 0\.2 s; pass a longer timeout"):
                    ask()
        server.shutdown()


def test_addresses_that_cannot_be_right() -> None:
    for url in ("http://user:secret@127.0.0.1:1", "http://127.0.0.1:port", "http://"):
        with pytest.raises(InvalidInput):
            Index.open(url)
    with pytest.raises(InvalidInput, match="its own index, encoder"):
        Index.open("http://127.0.0.1:1", "some-encoder")
    with RemoteIndex("http://127.0.0.1:1", patience=0) as index, pytest.raises(ServerUnavailable, match="running"):
        len(index)
