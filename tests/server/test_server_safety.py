"""Keys, limits and hostile input: nothing lost, nobody let in."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
import structlog

from incdsi.documents import Document
from incdsi.errors import InvalidInput
from incdsi.index import Index
from incdsi.server import logs
from incdsi.server.guard import Rate
from incdsi.server.service import MOST_EXPORTS
from incdsi.server.settings import ServerSettings
from tests.server.conftest import Start
from tests.server.servers import KEY, READ_KEY, Child, make, raw
from tests.server.test_server_documents import problem

JSON = {"Content-Type": "application/json"}
LOCAL = "\r\nHost: localhost\r\n"
SECRET_TEXT = "a very private sentence about zebras"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def flooded(url: str, opening: bytes) -> tuple[int, bytes]:
    """How many bytes of an endless request are taken, and what is answered."""
    address, sent, answer = httpx2.URL(url), 0, b""
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        with contextlib.suppress(ConnectionError):  # the server hangs up on whoever sends too much
            connection.sendall(opening)
            while sent < 300 << 20:
                sent += connection.send(b"x" * (1 << 16))
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
    return sent, answer


@pytest.mark.parametrize(
    "opening",
    [
        b"",
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: ",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X-Many: 1\r\n" * 10_000,
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1;long=",
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Trailer: ",
    ],
    ids=["method", "path", "one header", "many headers", "chunk extension", "trailer"],
)
def test_what_is_no_body_is_not_taken_without_end(start: Start, opening: bytes) -> None:
    http = start(key=KEY)
    taken, answer = flooded(str(http.base_url), opening)
    assert taken < 64 << 20  # what the system's own buffers hold
    if opening.startswith(b"GET /"):
        assert answer.startswith(b"HTTP/1.1 431"), answer
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"] == "TooLarge"
    assert http.get("/healthz").status_code == 200


def test_headers_up_to_the_limit_and_long_bodies_in_small_pieces_are_taken(start: Start) -> None:
    http = start(header_bytes=8192)
    assert http.get("/healthz", headers={"X-Long": "x" * 7000}).status_code == 200
    assert http.get("/healthz", headers={"X-Long": "x" * 9000}).status_code == 431
    text = iter([b'{"query": "', *([b"x"] * 1500), b'"}'])
    assert http.post("/v1/search", content=text, headers=JSON).status_code == 200  # 1,502 chunks


def test_without_a_key_nothing_but_the_door_is_open(start: Start, index: Index) -> None:
    http = start(key=KEY, read_key=READ_KEY)
    for path in ("/healthz", "/readyz", "/openapi.json", "/"):
        assert http.get(path).status_code == 200
    for headers in ({}, bearer("wrong"), bearer(KEY + "x"), bearer(KEY[:-1]), {"X-API-Key": "wrong"}):
        for method, path in (
            ("GET", "/v1/info"),
            ("GET", "/metrics"),
            ("GET", "/v1/documents"),
            ("POST", "/v1/search"),
            ("POST", "/v1/documents"),
            ("DELETE", "/v1/documents/a"),
            ("GET", "/v1/nothing"),
            ("GET", "//v1/info"),
            ("GET", "/page/../v1/info"),
        ):
            answer = http.request(method, path, headers=headers)
            if answer.status_code != 404:  # a path that is not there
                problem(answer, 401, "NotAllowed")
                assert answer.headers["www-authenticate"] == "Bearer"
    assert len(index) == 0


@pytest.mark.parametrize("given", [bearer(KEY), {"X-API-Key": KEY}, {"Authorization": f"bearer  {KEY}"}])
def test_the_key_opens_everything(start: Start, given: dict[str, str]) -> None:
    http = start(key=KEY, headers=given)
    assert http.post("/v1/documents", json={"id": "a", "text": "b"}).status_code == 201
    assert http.get("/v1/info").json()["access"] == "write"


def test_the_read_only_key_reads_only(start: Start, index: Index) -> None:
    http = start(key=KEY, read_key=READ_KEY, headers=bearer(READ_KEY))
    for path, body in ("search", {"query": "tent"}), ("documents/list", {}), ("documents/count", {}):
        assert http.post(f"/v1/{path}", json=body).status_code == 200
    for path in ("/v1/info", "/metrics", "/v1/map", "/v1/figures", "/v1/documents"):
        assert http.get(path).status_code == 200
    assert http.get("/v1/info").json()["access"] == "read"
    for method, path in (
        ("POST", "/v1/documents"),
        ("PUT", "/v1/documents/a"),
        ("PATCH", "/v1/documents/a"),
        ("DELETE", "/v1/documents/a"),
        ("POST", "/v1/documents/delete"),
        ("POST", "/v1/teach"),
        ("POST", "/v1/search/"),
    ):
        problem(http.request(method, path, json={"id": "a", "text": "b"}), 403, "NotAllowed")
    assert len(index) == 0


def test_settings_that_would_let_anybody_in_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(sentence: str, **given: object) -> None:
        with pytest.raises(InvalidInput, match=sentence):
            ServerSettings.load(None, {"index": tmp_path, **given})

    refused("listening on 0.0.0.0 requires a key", host="0.0.0.0")
    refused("listening on shop.example requires a key", host="shop.example")
    refused("at least 16", key="short", host="0.0.0.0")
    refused("read_key requires key", read_key=KEY)
    refused("are the same", key=KEY, read_key=KEY)
    refused("port", port=70000)
    refused("lets any web page call this server", cors_origins="https://shop.example,*")
    assert ServerSettings.load(None, {"cors_origins": "*", "key": KEY}).cors_origins == ["*"]
    assert ServerSettings.load(None, {"host": "0.0.0.0", "key": KEY}).loopback is False
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert ServerSettings(host=host).loopback
    assert KEY not in repr(ServerSettings(key=KEY))


def test_flags_go_before_the_environment_and_that_before_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "incdsi.toml"
    file.write_text('port = 1\nbatch = 2\nqueue = 3\ncors_origins = ["http://a"]\n')
    monkeypatch.setenv("INCDSI_PORT", "4")
    monkeypatch.setenv("INCDSI_BATCH", "5")
    monkeypatch.setenv("INCDSI_ALLOWED_HOSTS", "shop.example, other.example")
    made = ServerSettings.load(file, {"port": 6})
    assert (made.port, made.batch, made.queue) == (6, 5, 3)
    assert made.cors_origins == ["http://a"]
    assert made.allowed_hosts == ["shop.example", "other.example"]
    monkeypatch.setenv("INCDSI_CONFIG", str(file))
    assert ServerSettings.load(None, {}).queue == 3
    file.write_text("prot = 1\n")
    with pytest.raises(InvalidInput, match="prot"):
        ServerSettings.load(file, {})
    file.write_text("port =\n")
    with pytest.raises(InvalidInput, match="TOML"):
        ServerSettings.load(file, {})


def test_every_setting_is_on_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "HTTP.md").read_text()
    for name in ServerSettings.model_fields:
        assert f"| `{name}` |" in page


def test_another_host_is_refused_against_dns_rebinding(start: Start) -> None:
    http = start(allowed_hosts=["shop.example"])
    problem(http.get("/v1/info", headers={"Host": "evil.example"}), 403, "NotAllowed")
    for host in ("localhost:7799", "127.0.0.1", "[::1]:80", "shop.example"):
        assert http.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_client_that_asks_too_often_is_slowed_down(start: Start) -> None:
    http = start(rate=0.5, burst=3)
    answers = [http.get("/healthz") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 200, 200, 429]
    problem(answers[3], 429, "Overloaded")
    assert 1 <= int(answers[3].headers["retry-after"]) <= 2


def test_a_bucket_fills_again_and_clients_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("incdsi.server.guard.time.monotonic", lambda: clock[0])
    rate = Rate(2.0, 2)
    assert [rate.wait("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert rate.wait("b") == 0.0
    clock[0] = 0.5
    assert [rate.wait("a"), rate.wait("a")] == [0.0, 0.5]
    for number in range(10_050):
        rate.wait(str(number))
    assert len(rate._buckets) <= 10_000


def test_a_hundred_megabytes_are_refused_and_not_held(start: Start, index: Index) -> None:
    http = start()

    def pieces() -> Iterator[bytes]:
        yield b'{"id": "a", "text": "'
        for _ in range(100):
            yield b"x" * (1 << 20)
        yield b'"}'

    problem(http.post("/v1/documents", content=pieces(), headers=JSON), 413, "TooLarge")  # chunked
    problem(http.post("/v1/search", content=b"x" * (100 << 20), headers=JSON), 413, "TooLarge")  # with its length
    early = raw(
        str(http.base_url),
        b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 104857600\r\nExpect: 100-continue\r\n\r\n",
    )
    assert early.startswith(b"HTTP/1.1 413")
    assert http.post("/v1/search", json={"query": "still there"}).status_code == 200
    assert len(index) == 0


def test_a_small_question_gets_no_huge_answer(start: Start, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    http = start(answer_bytes=100_000, key=KEY, read_key=READ_KEY, headers=bearer(READ_KEY))
    index.add_many([Document(id=f"d{number}", text=f"rope {number} " + "x" * 30_000) for number in range(5)])
    assert len(http.post("/v1/search", json={"query": "rope", "k": 3}).json()["hits"]) == 3
    decoded = list[str]()
    with monkeypatch.context() as patched:
        patched.setattr("incdsi.store.reading.decode_document", lambda *columns: decoded.append(columns[0]))
        said = problem(http.post("/v1/search", json={"query": "rope", "k": 5}), 413, "TooLarge")
    assert "lower k" in said
    assert not decoded  # refused before a text was read
    many = {"queries": ["rope"] * 4, "k": 1}
    problem(http.post("/v1/search", json=many), 413, "TooLarge")
    assert len(http.post("/v1/search", json={"queries": ["rope"] * 2, "k": 1}).json()["results"]) == 2


def test_exports_at_a_time_are_few(start: Start, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    http, gate, begun = start(), threading.Event(), threading.Semaphore(0)

    def slow() -> Iterator[tuple[Document, list[str]]]:
        begun.release()
        gate.wait(30)
        yield Document(id="a", text="rope"), []

    monkeypatch.setattr(index, "with_queries", slow)
    with ThreadPoolExecutor(MOST_EXPORTS) as pool:
        exports = [pool.submit(http.get, "/v1/documents") for _ in range(MOST_EXPORTS)]
        for _ in exports:
            assert begun.acquire(timeout=30)
        problem(http.get("/v1/documents"), 503, "Overloaded")
        gate.set()
        assert [one.result().status_code for one in exports] == [200] * MOST_EXPORTS
    assert http.get("/v1/documents").status_code == 200


def test_many_short_hits_are_a_huge_answer_too(start: Start, index: Index) -> None:
    http = start(answer_bytes=100_000)
    index.add_many([Document(id=f"d{number}", text="rope") for number in range(100)])
    problem(http.post("/v1/search", json={"queries": ["rope"] * 10, "k": 100}), 413, "TooLarge")


@pytest.mark.parametrize("opening", [b"[", b'{"where":', b'{"a":[', b'{"query":"x","where":{"not":'])
def test_deep_json_is_refused(http: httpx2.Client, opening: bytes) -> None:
    for path in ("search", "documents", "teach", "documents/delete", "documents/list", "documents/count"):
        for depth in (300, 100_000):
            answer = http.post(f"/v1/{path}", content=opening * depth, headers=JSON)
            assert answer.status_code in (400, 422)
            problem(answer, answer.status_code, "InvalidInput")
    deep = {"query": "x", "where": json.loads('{"not":' * 150 + "{}" + "}" * 150)}
    problem(http.post("/v1/search", json=deep), 422, "InvalidInput")


def test_numbers_and_letters_that_break_parsers_are_refused(http: httpx2.Client, index: Index) -> None:
    for content in (
        b'{"id": "a", "text": "\\ud800"}',
        b'{"id": "a", "text": "b", "metadata": {"n": 1e999}}',
        b'{"id": "a", "text": "b", "metadata": {"n": NaN}}',
        b'{"id": "a", "text": "b", "metadata": {"n": ' + b"9" * 5000 + b"}}",
        b"\xff\xfe",
        b"",
        b"null",
    ):
        answer = http.post("/v1/documents", content=content, headers=JSON)
        assert answer.status_code in (400, 422), content[:60]
    assert len(index) == 0


def test_a_client_that_never_finishes_is_let_go(start: Start) -> None:
    http = start(header_seconds=0.3, body_seconds=0.3)
    url = str(http.base_url)
    assert raw(url, b"") == b""  # says nothing
    assert raw(url, b"GET /healthz HTTP/1.1\r\nHost: loc") == b""  # half a head
    half = f"POST /v1/search HTTP/1.1{LOCAL}Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{".encode()
    assert raw(url, half).startswith(b"HTTP/1.1 408")
    with socket.create_connection((http.base_url.host, http.base_url.port), timeout=10) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = b""
        while b'"ok"' not in answer:  # head and body may come apart
            answer += connection.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200")
        connection.sendall(b"GET /heal")  # half of a second one
        assert connection.recv(65536) == b""
    stream = half.replace(b"application/json", b"application/x-ndjson").replace(b"search", b"documents")
    assert raw(url, stream).startswith(b"HTTP/1.1 408")
    assert http.get("/healthz").status_code == 200


def test_a_client_that_does_not_read_its_answer_is_let_go(start: Start, index: Index) -> None:
    http = start(body_seconds=0.2, connections=1)
    index.add(Document(id="long", text="x" * (16 << 20)))
    with socket.create_connection((http.base_url.host, http.base_url.port), timeout=60) as connection:
        connection.sendall(b"GET /v1/documents/long HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(10).startswith(b"HTTP/1.1")
        recovers(http, "/healthz")  # there is room for one connection only
    assert len(http.get("/v1/documents/long").content) > 16 << 20  # one who reads gets it all


def test_too_many_connections_are_refused_politely(start: Start) -> None:
    http = start(connections=50)
    url = httpx2.URL(str(http.base_url))
    idle = [socket.create_connection((url.host, url.port)) for _ in range(300)]
    try:
        refused = http.get("/healthz")
        problem(refused, 503, "Overloaded")
        assert refused.headers["retry-after"]
        assert refused.headers["connection"] == "close"
    finally:
        for one in idle:
            one.close()
    recovers(http, "/healthz")


@pytest.mark.slow
def test_ten_thousand_connections_are_refused_politely(folder: Path) -> None:
    make(folder).close()
    with Child(folder, connections=500, header_seconds=60) as child, httpx2.Client(base_url=child.url) as http:
        assert http.post("/v1/documents", json={"id": "a", "text": "tent"}).status_code == 201
        url = httpx2.URL(child.url)
        idle = [socket.create_connection((url.host, url.port), timeout=30) for _ in range(10_000)]
        for one in idle[:50]:
            one.sendall(b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 503")
        for one in idle:
            one.close()
        recovers(http, "/v1/documents/a")


def recovers(http: httpx2.Client, path: str) -> None:
    """Answers again within 20 seconds."""
    for _ in range(200):
        if http.get(path).status_code == 200:
            return
        time.sleep(0.1)
    pytest.fail("the server did not recover")


@pytest.mark.parametrize(
    "path",
    ["/v1/documents/../info", "/%2e%2e/%2e%2e/etc/passwd", "/page/..%2f..%2fsettings.py", "//etc/passwd", "/v1/./info"],
)
def test_tricks_with_paths_find_nothing(start: Start, path: str) -> None:
    http = start(key=KEY)
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    assert raw(str(http.base_url), request).split(b" ")[1] in (b"401", b"404")


def test_requests_that_are_no_http_are_refused(http: httpx2.Client) -> None:
    url = str(http.base_url)
    for content in (b"\x16\x03\x01\x02\x00", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x00" * 100):
        answer = raw(url, content, 3)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    smuggled = f"POST /v1/search HTTP/1.1{LOCAL}{both}".encode()
    assert not raw(url, smuggled, 3).startswith(b"HTTP/1.1 200")
    assert http.get("/healthz").status_code == 200


def test_logs_are_json_and_hold_no_key_and_no_text(folder: Path) -> None:
    make(folder).close()
    with Child(folder, key=KEY, read_key=READ_KEY) as child, httpx2.Client(base_url=child.url) as http:
        for key in (KEY, READ_KEY, "wrong-but-secret-key"):
            http.post("/v1/documents", json={"id": "zebra-id", "text": SECRET_TEXT}, headers=bearer(key))
            http.post("/v1/search", json={"query": SECRET_TEXT}, headers={"X-API-Key": key})
            http.get("/v1/documents/zebra-id", params={"api_key": key}, headers=bearer(key))
            http.get(f"/v1/{key}")
        http.post("/v1/documents", content=SECRET_TEXT.encode(), headers=bearer(KEY) | JSON)
        http.post("/v1/teach", json={"query": SECRET_TEXT, "id": "gone"}, headers=bearer(KEY))
        http.put("/v1/documents/zebra%1B%5B2J%0Aevent", json={"text": "x"}, headers=bearer(KEY))
        http.get("/healthz%1B%5B2J%0A", headers={"X-Request-ID": "\x1b[2J", "X-Api-Key": KEY})
        http.get("/healthz", headers={"X-Request-ID": "find-me"})
        child.process.terminate()
        log = child.ended()
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"start", "request", "stop"} <= {line["event"] for line in lines}
    (found,) = [line for line in lines if line.get("request_id") == "find-me"]
    assert (found["route"], found["status"], found["method"]) == ("/healthz", 200, "GET")
    for secret in (KEY, READ_KEY, "wrong-but-secret-key", "zebra", "\x1b", "\\u001b"):
        assert secret not in log


def test_other_peoples_exceptions_are_logged_as_kind_and_place(capsys: pytest.CaptureFixture[str]) -> None:
    before = structlog.get_config(), logging.getLogger().handlers, logging.getLogger().level
    try:
        logs.configure()
        structlog.contextvars.bind_contextvars(request_id="find-me")
        try:
            raise RuntimeError(SECRET_TEXT)
        except RuntimeError:
            logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
            structlog.get_logger().error("fault", exc_info=True)
        logging.getLogger("incdsi").warning("not tuned: %s", "no room")
    finally:
        structlog.contextvars.clear_contextvars()
        structlog.configure(**before[0])
        logging.getLogger().handlers, logging.getLogger().level = before[1:]
    first, second, third = map(json.loads, capsys.readouterr().err.splitlines())
    for line in (first, second):
        assert (line["kind"], line["request_id"], line["level"]) == ("RuntimeError", "find-me", "error")
        assert "test_server_safety.py" in line["where"][-1]
        assert "zebras" not in str(line)
        assert "traceback object" not in str(line)
    assert (third["event"], third["level"]) == ("not tuned: no room", "warning")


def test_a_fault_of_ours_says_nothing_about_the_request(
    start: Start, index: Index, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    http = start()

    def broken(texts: list[str], *rest: object, **named: object) -> None:
        raise RuntimeError(f"cannot search {texts}")

    monkeypatch.setattr(index, "search_many", broken)
    answer = http.post("/v1/search", json={"query": SECRET_TEXT})
    assert "zebras" not in problem(answer, 500, "IncDSIError")
    said = capsys.readouterr()
    assert "RuntimeError" in said.out + said.err
    assert "zebras" not in said.out + said.err
