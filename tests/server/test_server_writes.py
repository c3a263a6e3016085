"""One queue of writes: grouped, bounded, and every accepted one is answered."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
import socket
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest

from incdsi.documents import Addition, Document
from incdsi.errors import DiskFull, DuplicateDocument, InvalidInput, Overloaded
from incdsi.index import Index
from incdsi.index.receipts import Receipts
from incdsi.records import Record
from incdsi.server.answers import Reply, Ticket
from incdsi.server.writes import Add, Done, Kept, Write, WriteQueue
from incdsi.store.transaction import Transaction
from tests.index.index_samples import TOY
from tests.server.conftest import Start
from tests.server.servers import Child, make, running
from tests.server.test_server_documents import problem


def held(gate: threading.Event) -> Write[bool]:
    return Write(act=lambda index: gate.wait(30))


def let_go(gate: threading.Event, queue: WriteQueue) -> None:
    """Open the gate once everything behind it is drafted."""
    while not all(write.ready.is_set() for write in list(queue._waiting)):
        time.sleep(0.01)
    gate.set()


def document(id: str) -> Document:
    return Document(id=id, text=f"a tent for {id}")


def test_what_piles_up_is_added_together_and_a_bad_one_fails_alone(index: Index) -> None:
    gate, groups = threading.Event(), list[int]()
    queue = WriteQueue(index, 100, groups.append)
    queue.submit(held(gate))
    futures = [queue.submit(Add.of([document(id)], {id: [f"what is {id}"]})) for id in ("a", "b", "a", "c")]
    let_go(gate, queue)
    done = [future.result(30) for future in (futures[0], futures[1], futures[3])]
    with pytest.raises(DuplicateDocument, match="'a'"):
        futures[2].result(30)
    queue.close()
    assert groups == [4]
    assert [one.result[0].document_id for one in done] == ["a", "b", "c"]
    assert len(index) == 3
    assert index.queries("c") == ["what is c"]


def test_an_error_nobody_foresaw_is_told_to_each_and_the_next_write_is_done(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    queue = WriteQueue(index, 100)
    queue.submit(held(gate))

    def broken(*_: object, **__: object) -> None:
        raise OSError("the disk does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(index, "add_many", broken)
        futures = [queue.submit(Add.of([document(id)], {})) for id in ("a", "b")]
        let_go(gate, queue)
        for future in futures:
            with pytest.raises(OSError, match="does not answer"):
                future.result(30)
    assert queue.submit(Add.of([document("c")], {})).result(30).result[0].document_id == "c"
    queue.close()


def test_a_group_that_was_committed_is_not_tried_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, add_many = threading.Event(), index.add_many
    queue = WriteQueue(index, 100)
    queue.submit(held(gate))

    def late(*given: Any, **named: Any) -> None:
        add_many(*given, **named)
        raise MemoryError("no room to show them")

    monkeypatch.setattr(index, "add_many", late)
    futures = [queue.submit(Add.of([document(id)], {})) for id in ("a", "b")]
    let_go(gate, queue)
    for future in futures:
        with pytest.raises(MemoryError):  # and not that they are duplicates
            future.result(30)
    queue.close()
    assert len(index) == 2


def test_a_group_is_committed_once(index: Index) -> None:
    gate = threading.Event()
    queue = WriteQueue(index, 100)
    queue.submit(held(gate))
    futures = [queue.submit(Add.of([document(str(number))], {})) for number in range(10)]
    let_go(gate, queue)
    versions = {future.result(30).version for future in futures}
    queue.close()
    assert versions == {index.version}


def test_each_of_a_group_is_answered_under_its_own_key(index: Index) -> None:
    gate = threading.Event()
    queue = WriteQueue(index, 100)
    queue.submit(held(gate))
    for id in ("a", "b", "c"):
        ticket = Ticket(key=f"key of {id}", request=b"")
        queue.submit(Add.of([document(id)], {}, Kept(ticket=ticket, reply=named)))
    let_go(gate, queue)
    queue.close()
    answers = [index.receipts.find(f"key of {id}") for id in ("a", "b", "c")]
    assert [answer.content for answer in answers if answer] == [b"a", b"b", b"c"]


def named(done: Done[list[Addition]]) -> Reply:
    return Reply(status=201, content=done.result[0].document_id.encode(), version=done.version)


def test_other_writes_keep_their_place_between_additions(index: Index) -> None:
    gate, order = threading.Event(), list[str]()
    queue = WriteQueue(index, 100)
    queue.submit(held(gate))
    first = queue.submit(Add.of([document("a")], {}))
    between = queue.submit(Write(act=lambda index: order.append(f"{len(index)} there") or index.delete("a")))
    again = queue.submit(Add.of([document("a")], {}))
    gate.set()
    assert [future.result(30).version for future in (first, between, again)] == sorted(
        future.result().version for future in (first, between, again)
    )
    queue.close()
    assert order == ["1 there"]
    assert "a" in index


def test_documents_are_encoded_before_their_turn_and_not_again(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded, gate, queue = list[str](), threading.Event(), WriteQueue(index, 100)
    encode = type(TOY).encode

    def counted(self: Any, texts: Sequence[str], *rest: Any) -> Any:
        encoded.extend(texts)
        return encode(self, texts, *rest)

    monkeypatch.setattr(type(TOY), "encode", counted)
    queue.submit(held(gate))
    futures = [queue.submit(Add.of([document(id)], {id: [f"what is {id}"]})) for id in ("a", "b", "a")]
    let_go(gate, queue)
    assert {"what is a", "what is b"} <= set(encoded)
    assert futures[0].result(30).result[0].seconds["encode"] > 0
    with pytest.raises(DuplicateDocument):
        futures[2].result(30)
    queue.close()
    assert encoded.count("what is b") == 1
    assert index.queries("b") == ["what is b"]


def test_what_cannot_be_drafted_ahead_is_refused_when_its_turn_comes(index: Index) -> None:
    queue = WriteQueue(index, 100)
    with pytest.raises(InvalidInput, match="expected its queries as a list"):
        queue.submit(Add.of([document("a")], {"a": [None]})).result(30)  # type: ignore[list-item]
    assert queue.submit(Add.of([document("b")], {})).result(30).result[0].document_id == "b"
    queue.close()


def test_a_full_queue_refuses_and_closing_does_what_was_accepted(index: Index) -> None:
    gate = threading.Event()
    queue = WriteQueue(index, 2)
    queue.submit(held(gate))
    while len(queue):
        time.sleep(0.01)
    futures = [queue.submit(Add.of([document(id)], {})) for id in ("a", "b")]
    with pytest.raises(Overloaded, match="2 writes are waiting"):
        queue.submit(Add.of([document("c")], {}))
    threading.Timer(0.1, gate.set).start()
    queue.close()
    assert all(future.done() for future in futures)
    assert len(index) == 2
    with pytest.raises(Overloaded, match="stopping"):
        queue.submit(Add.of([document("d")], {}))


def test_searches_go_on_and_writes_are_refused_politely_while_the_writer_is_busy(
    start: Start, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = start(queue=1)
    http.post("/v1/documents", json={"id": "first", "text": "a lamp"})
    gate, begun, add_many = threading.Event(), threading.Event(), index.add_many

    def slow(documents: Sequence[Document], *rest: Any, **named: Any) -> list[Addition]:
        begun.set()
        gate.wait(30)
        return add_many(documents, *rest, **named)

    monkeypatch.setattr(index, "add_many", slow)
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(http.post, "/v1/documents", json={"id": "a", "text": "x"})]
        assert begun.wait(30)
        waiting.append(pool.submit(http.post, "/v1/documents", json={"id": "b", "text": "y"}))
        while http.get("/v1/figures").json()["waiting"] < 1:
            time.sleep(0.01)
        refused = http.post("/v1/documents", json={"id": "c", "text": "z"})
        problem(refused, 503, "Overloaded")
        assert int(refused.headers["retry-after"]) >= 1
        assert http.post("/v1/search", json={"query": "lamp"}).json()["hits"]
        assert http.get("/readyz").status_code == 200
        gate.set()
        assert [one.result().status_code for one in waiting] == [201, 201]
    assert len(index) == 3


def test_answers_are_kept_over_a_restart_and_forgotten_when_too_many(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.store.answers.MOST", 3)

    def put(http: httpx2.Client, key: str) -> httpx2.Response:
        return http.put("/v1/documents/a", json={"text": "a tent"}, headers={"Idempotency-Key": key})

    with running(index, folder) as url, httpx2.Client(base_url=url) as http:
        first = {key: put(http, key) for key in ("1", "2", "3", "4", "5")}
    with running(index, folder) as url, httpx2.Client(base_url=url) as http:
        again = put(http, "5")
        assert (again.status_code, again.content) == (first["5"].status_code, first["5"].content)
        assert again.headers["idempotent-replay"] == "true"
        assert "idempotent-replay" not in put(http, "1").headers  # forgotten: it was the oldest


def test_what_was_answered_is_gone_after_compacting(http: httpx2.Client, index: Index, folder: Path) -> None:
    http.post("/v1/documents", json={"id": "secret", "text": "a tent"}, headers={"Idempotency-Key": "1"})
    lesson = {"query": "xylophonist conspiracy", "id": "secret"}
    assert http.post("/v1/teach", json=lesson, headers={"Idempotency-Key": "2"}).status_code == 200
    assert http.delete("/v1/documents/secret").status_code == 200
    index.compact()
    found = [path for path in folder.rglob("*") if path.is_file() and b"xylophonist" in path.read_bytes()]
    assert not found
    again = http.post("/v1/documents", json={"id": "o", "text": "x"}, headers={"Idempotency-Key": "1"})
    assert again.status_code == 201  # and the server goes on


def test_a_change_is_acknowledged_also_when_its_answer_cannot_be_amended(
    http: httpx2.Client, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFull("the disk is full")

    monkeypatch.setattr(Receipts, "amend", full)
    for _ in range(2):
        answer = http.post("/v1/documents", json={"id": "a", "text": "x"}, headers={"Idempotency-Key": "1"})
        assert answer.status_code == 201
        assert answer.json()["additions"][0]["id"] == "a"
    assert answer.headers["idempotent-replay"] == "true"


def filled(http: httpx2.Client) -> None:
    """What each of CALLS is about."""
    rows = [
        {"id": id, "text": f"a lamp {id}", "metadata": {"old": True}} for id in ("patched", "gone", "also", "taught")
    ]
    assert http.post("/v1/documents", json={"documents": rows}).status_code == 201


MANY = [{"id": f"m{number}", "text": f"rope and tent {number}"} for number in range(300)]
CALLS: dict[str, tuple[str, str, Any]] = {
    "one": ("POST", "/v1/documents", {"id": "one", "text": "a tent"}),
    "many": ("POST", "/v1/documents", {"documents": MANY}),
    "upsert-many": (
        "POST",
        "/v1/documents/upsert",
        {"documents": [{"id": "new", "text": "x"}, {"id": "also", "text": "y"}]},
    ),
    "put": ("PUT", "/v1/documents/new", {"text": "a tent"}),
    "patch": ("PATCH", "/v1/documents/patched", {"title": "Lamp"}),
    "delete": ("DELETE", "/v1/documents/gone", None),
    "delete-many": ("POST", "/v1/documents/delete", {"ids": ["also"], "resolve": True}),
    "teach": ("POST", "/v1/teach", {"query": "light at night", "id": "taught"}),
}


def send(http: httpx2.Client, call: str) -> httpx2.Response:
    method, path, body = CALLS[call]
    return http.request(method, path, json=body, headers={"Idempotency-Key": call})


@pytest.mark.parametrize("call", CALLS)
def test_a_retried_key_gets_its_answer_although_nobody_heard_the_first(
    start: Start, index: Index, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    http = start()
    filled(http)
    with monkeypatch.context() as patched:
        patched.setattr(Write, "done", lost)  # the change is committed and its answer never made
        assert send(http, call).status_code == 500
    version = index.version
    again = send(http, call)
    assert again.status_code in (200, 201), again.text
    assert again.headers["idempotent-replay"] == "true"
    assert again.json()["version"] <= index.version == version  # nothing was done twice


def lost(write: Write[Any], result: Any, version: int, before: Any, *after: Any) -> Done[Any]:
    if after:
        raise RuntimeError("the answer is lost")
    return Done(result=result, version=version, seconds=0.0, before=before)


def test_a_batch_that_does_not_fit_is_not_kept_in_part(
    http: httpx2.Client, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert, count = Transaction.insert, 0

    def full(transaction: Transaction, record: Record) -> int:
        nonlocal count
        count += 1
        if count > 200:
            raise DiskFull("the disk is full")
        return insert(transaction, record)

    with monkeypatch.context() as patched:
        patched.setattr(Transaction, "insert", full)
        problem(send(http, "many"), 507, "DiskFull")
    assert len(index) == 0
    assert http.get("/v1/documents").text == ""
    assert http.post("/v1/search", json={"query": "rope"}).json()["hits"] == []
    done = send(http, "many")
    assert (done.status_code, len(done.json()["additions"]), len(index)) == (201, 300, 300)
    assert http.post("/v1/search", json={"query": "rope and tent 299"}).json()["hits"]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_a_retried_key_gets_its_answer_after_a_kill_right_after_the_commit(folder: Path, call: str) -> None:
    with make(folder) as index, running(index, folder) as url, httpx2.Client(base_url=url) as http:
        filled(http)
    with Child(folder, dies_after_a_commit=True) as child, httpx2.Client(base_url=child.url) as http:
        with pytest.raises(httpx2.TransportError):
            send(http, call)
        child.ended()
        assert child.process.returncode == -signal.SIGKILL
    with make_open(folder) as index, running(index, folder) as url, httpx2.Client(base_url=url) as http:
        again = send(http, call)
        assert again.status_code in (200, 201), again.text
        assert again.headers["idempotent-replay"] == "true"
        assert index.verify() == []


def add(http: httpx2.Client, id: str) -> bool:
    """Whether it was acknowledged."""
    try:
        return http.post("/v1/documents", json={"id": id, "text": f"rope {id}"}).status_code == 201
    except httpx2.TransportError:
        return False


def stormed(child: Child, stop: Any, count: int = 4) -> tuple[set[str], set[str]]:
    """Clients that add until the server is stopped; the ids sent, and those acknowledged."""
    sent, taken = set[str](), set[str]()

    def go(name: int) -> None:
        with httpx2.Client(base_url=child.url, timeout=30) as http:
            for number in range(10_000):
                id = f"{name}-{number}"
                sent.add(id)
                if not add(http, id):
                    return
                taken.add(id)

    threads = [threading.Thread(target=go, args=(name,)) for name in range(count)]
    for thread in threads:
        thread.start()
    while len(taken) < 12:
        time.sleep(0.01)
    stop()
    for thread in threads:
        thread.join(60)
    return sent, taken


def test_stopping_answers_every_write_it_accepted(folder: Path) -> None:
    make(folder).close()
    with Child(folder) as child:
        _, taken = stormed(child, child.process.terminate)
        child.ended()
        assert child.process.returncode == 0
    with make_open(folder) as index:
        # Whatever is there was acknowledged, and whatever was acknowledged is there.
        assert {document.id for document in index.documents()} == taken


def open_stream(url: str, content: bytes) -> socket.socket:
    """A connection on which a stream has begun that goes on after this."""
    address = httpx2.URL(url)
    connection = socket.create_connection((address.host, address.port), timeout=30)
    connection.sendall(
        b"POST /v1/documents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
        b"Content-Length: 1000000000\r\n\r\n" + content
    )
    return connection


def read_problem(connection: socket.socket, status: int) -> dict[str, Any]:
    with connection, connection.makefile("rb") as answer:
        head, _, body = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status}".encode()), head + body
    assert b"application/problem+json" in head
    found: dict[str, Any] = json.loads(body)
    return found


def test_stopping_ends_a_stream_and_tells_what_became_of_its_lines(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.server.bodies.LINGER_SECONDS", 0.1)
    lines = [json.dumps({"id": f"s{number}", "text": f"rope {number}"}).encode() for number in range(100)]
    lines[70] = b"no json"
    with running(index, folder) as url:
        connection = open_stream(url, b"\n".join(lines) + b'\n{"id": "half", "te')
        while len(index) < 64:
            time.sleep(0.01)
    found = read_problem(connection, 503)
    assert (found["error"], found["lines"], found["added"], found["refused"]) == ("Overloaded", 100, 99, 1)
    assert found["refusals"][0]["line"] == 71
    assert len(index) == 99


def test_stopping_ends_a_stream_that_never_pauses(index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("incdsi.server.bodies.LINGER_SECONDS", 0.1)

    def send(connection: socket.socket) -> None:
        with contextlib.suppress(ConnectionError):
            for number in itertools.count():
                line = {"id": f"s{number}", "text": f"rope {number} " + "x" * 4000}
                connection.sendall(json.dumps(line).encode() + b"\n")

    with running(index, folder, stop_seconds=30) as url:
        connection = open_stream(url, b"")
        sender = threading.Thread(target=send, args=[connection])
        sender.start()
        while len(index) < 64:
            time.sleep(0.01)
    sender.join(30)
    found = read_problem(connection, 503)
    assert found["lines"] == found["added"] == len(index)


def test_a_stream_that_comes_too_slowly_is_told_what_was_taken(start: Start, index: Index) -> None:
    http = start(body_seconds=0.3)
    line = json.dumps({"id": "a", "text": "rope"}).encode() + b"\n"
    found = read_problem(open_stream(str(http.base_url), line + b'{"id": "half"'), 408)
    assert (found["error"], found["lines"], found["added"]) == ("TooSlow", 1, 1)
    assert "a" in index


def test_a_request_that_outlasts_the_time_to_stop_is_answered_with_a_problem(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, begun = threading.Event(), threading.Event()

    def stuck(*_: object, **__: object) -> list[Addition]:
        begun.set()
        gate.wait(30)
        return []

    monkeypatch.setattr(index, "add_many", stuck)
    with ThreadPoolExecutor(1) as pool:
        with running(index, folder, stop_seconds=1) as url:
            asked = pool.submit(httpx2.post, f"{url}/v1/documents", json={"id": "a", "text": "x"}, timeout=30)
            assert begun.wait(30)
            asked.add_done_callback(lambda _: gate.set())
        assert "check whether the change was made" in problem(asked.result(30), 503, "Overloaded")


def test_what_was_acknowledged_is_there_after_a_kill(folder: Path) -> None:
    make(folder).close()
    with Child(folder) as child:
        sent, taken = stormed(child, child.process.kill)
        child.ended()
    with make_open(folder) as index, running(index, folder) as url:
        there = {json.loads(line)["id"] for line in httpx2.get(f"{url}/v1/documents").text.splitlines()}
        assert taken <= there <= sent
        assert index.verify() == []


def make_open(folder: Path) -> Index:
    return Index.open(folder, TOY)
