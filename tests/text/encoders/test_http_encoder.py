"""An encoder behind HTTP, asked on a server of the test's own."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incdsi import Document, Index
from incdsi.errors import EncoderMismatch, EncoderUnavailable, InvalidFile, InvalidInput
from incdsi.text.encoders import for_documents, http_encoder, load_encoder
from incdsi.text.encoders.http_encoder import HttpEncoder
from tests.test_demo import WordEncoder


class Embeddings:
    """`/v1/embeddings` over the words of a text; `faults` are statuses to answer first, or bodies to answer with."""

    def __init__(self) -> None:
        self.faults: list[int | object] = []
        self.asked: list[list[str]] = []
        self.headers: list[Any] = []
        self.embed: Callable[[list[str]], Any] = lambda texts: 3.0 * WordEncoder().encode(texts)

    def answer(self, path: str, headers: Any, body: dict[str, Any]) -> tuple[int, object]:
        assert path == "/v1/embeddings"
        assert body["model"] == "words"
        self.asked.append(body["input"])
        self.headers.append(headers)
        if self.faults:
            fault = self.faults.pop(0)
            return (fault, {"error": "no such luck"}) if isinstance(fault, int) else (200, fault)
        rows = [{"index": place, "embedding": row.tolist()} for place, row in enumerate(self.embed(body["input"]))]
        return 200, {"data": rows[::-1]}  # in any order


@pytest.fixture
def served() -> Iterator[tuple[str, Embeddings]]:
    state = Embeddings()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, content = state.answer(self.path, self.headers, body)
            payload = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            if status == 307:
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(payload)))
            self.end_headers()
            self.wfile.write(payload)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1", state
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, which nobody sits through."""
    found: list[float] = []
    monkeypatch.setattr(http_encoder.time, "sleep", found.append)
    monkeypatch.delenv("INCDSI_ENCODER_KEY", raising=False)
    return found


def test_vectors_come_in_the_order_of_the_texts_and_of_unit_length(served: tuple[str, Embeddings]) -> None:
    url, state = served
    encoder = load_encoder(f"{url}#words")
    texts = [f"river{i} and stone{i % 7}" for i in range(http_encoder.BATCH * 2 + 5)]
    told: list[tuple[int, int]] = []
    assert np.allclose(encoder.encode(texts, lambda *pair: told.append(pair)), WordEncoder().encode(texts), atol=1e-6)
    assert told == [(32, 69), (64, 69), (69, 69)]
    assert max(map(len, state.asked)) == http_encoder.BATCH
    assert encoder.encode([]).shape == (0, 48)
    assert (encoder.dimension, encoder.encode(["a"]).dtype) == (48, np.float32)


def test_the_fingerprint_goes_by_the_model_and_not_by_the_address(served: tuple[str, Embeddings]) -> None:
    url, _ = served
    plain = HttpEncoder.connect(url, "words")
    moved = HttpEncoder.connect(url.replace("127.0.0.1", "localhost") + "/", "words")
    prompted = HttpEncoder.connect(url, "words", prompt="q ", document_prompt="d ")
    assert plain.fingerprint == moved.fingerprint != prompted.fingerprint


def test_queries_and_documents_have_their_own_prompts(served: tuple[str, Embeddings]) -> None:
    url, state = served
    encoder = HttpEncoder.connect(url, "words", prompt="query: ", document_prompt="passage: ")
    encoder.encode(["a"])
    for_documents(encoder).encode(["b"])
    assert state.asked[-2:] == [["query: a"], ["passage: b"]]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(served: tuple[str, Embeddings], waits: list[float], status: int) -> None:
    url, state = served
    encoder = HttpEncoder.connect(url, "words")
    state.faults = [status, status]
    assert encoder.encode(["a"]).shape == (1, 48)
    assert waits == [0.5, 1.0]


def test_what_does_not_pass_is_one_sentence(served: tuple[str, Embeddings], waits: list[float]) -> None:
    url, state = served
    encoder = HttpEncoder.connect(url, "words")
    state.faults = [503] * 5
    with pytest.raises(EncoderUnavailable, match=rf"the encoder at {url} refused with 503 .*no such luck.*see its log"):
        encoder.encode(["a"])
    assert waits == [0.5, 1.0, 2.0, 4.0]


@pytest.mark.parametrize(
    ("status", "advice"), [(401, "set INCDSI_ENCODER_KEY"), (404, "that it serves 'words'"), (413, "shorter texts")]
)
def test_a_refusal_is_not_tried_again(
    served: tuple[str, Embeddings], waits: list[float], status: int, advice: str
) -> None:
    url, state = served
    state.faults = [status]
    with pytest.raises(EncoderUnavailable, match=rf"refused with {status} .*{advice}"):
        HttpEncoder.connect(url, "words")
    assert waits == []


def test_nobody_there_is_one_sentence(waits: list[float]) -> None:
    with pytest.raises(EncoderUnavailable, match=r"the encoder at http://127.0.0.1:9/v1 does not answer .*start it"):
        HttpEncoder.connect("http://127.0.0.1:9/v1", "words")
    assert len(waits) == 4


def test_no_other_address_gets_the_texts(served: tuple[str, Embeddings]) -> None:
    url, state = served
    state.faults = [307]
    with pytest.raises(EncoderUnavailable, match="refused with 307"):
        HttpEncoder.connect(url, "words")


@pytest.mark.parametrize(
    "answer",
    [
        b"<html>",
        {},
        {"data": []},
        {"data": [{"index": 1, "embedding": [1.0]}]},
        {"data": [{"index": 0, "embedding": "x"}]},
        {"data": [{"index": 0, "embedding": []}]},
        {"data": [{"index": 0, "embedding": [0.0, 0.0]}]},
        {"data": [{"index": 0, "embedding": [float("nan"), 1.0]}]},
    ],
)
def test_an_answer_that_makes_no_sense_is_refused(served: tuple[str, Embeddings], answer: object) -> None:
    url, state = served
    state.faults = [answer]
    with pytest.raises(EncoderUnavailable, match=r"something else than 1 vectors|does not answer with JSON"):
        HttpEncoder.connect(url, "words")


def test_the_key_is_sent_and_never_stored(
    served: tuple[str, Embeddings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, state = served
    monkeypatch.setenv("INCDSI_ENCODER_KEY", "secret-17")
    with Index.create(tmp_path / "shop", f"{url}#words") as index:
        index.add(Document(id="a", text="a river"))
    assert {headers["Authorization"] for headers in state.headers} == {"Bearer secret-17"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"secret-17" in path.read_bytes()]


def test_an_index_keeps_the_address_and_opens_without_asking(served: tuple[str, Embeddings], tmp_path: Path) -> None:
    url, state = served
    with Index.create(tmp_path / "shop", f"{url}#words") as index:
        index.add_many([Document(id=word, text=f"a {word}") for word in ("river", "stone")])
    before = len(state.asked)
    with Index.open(tmp_path / "shop") as index:
        assert index.get("river").text == "a river"
        assert index.search("stone", mode="lexical")[0].document_id == "stone"
        assert len(state.asked) == before
        assert index.search("a stone", mode="learned")[0].document_id == "stone"
        assert index.verify() == []


def test_another_model_under_the_same_name_is_refused(served: tuple[str, Embeddings], tmp_path: Path) -> None:
    url, state = served
    with Index.create(tmp_path / "shop", f"{url}#words") as index:
        index.add(Document(id="river", text="a river"))
    state.embed = lambda texts: WordEncoder().encode(texts)[:, ::-1]
    with Index.open(tmp_path / "shop") as index:
        with pytest.raises(EncoderMismatch, match="serves another model as 'words'"):
            index.search("a river")
        with pytest.raises(EncoderMismatch):
            index.add(Document(id="stone", text="a stone"))
        assert len(index) == 1
    state.embed = lambda texts: WordEncoder().encode(texts)[:, :7]
    with Index.open(tmp_path / "shop") as index, pytest.raises(EncoderMismatch, match="vectors of 7 numbers, not 48"):
        index.search("a river")


def test_a_server_that_goes_away_loses_nothing(served: tuple[str, Embeddings], tmp_path: Path) -> None:
    url, state = served
    with Index.create(tmp_path / "shop", f"{url}#words") as index:
        index.add(Document(id="river", text="a river"))
        state.faults = [503] * 5
        with pytest.raises(EncoderUnavailable):
            index.add(Document(id="stone", text="a stone"))
        assert len(index) == 1
        index.add(Document(id="stone", text="a stone"))
        assert index.verify() == []
        assert len(index) == 2


def test_what_is_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="are not the address of a server and the name of a model"):
        load_encoder("http://127.0.0.1:9/v1")
    (tmp_path / "endpoint.json").write_text("{}")
    with pytest.raises(InvalidFile, match="not the address of an encoder"):
        HttpEncoder.open(tmp_path)
