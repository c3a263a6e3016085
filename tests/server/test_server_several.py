"""Several indexes on one server: each under its name, with its own keys, logs and queue."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from incdsi.client import RemoteIndex, kept_gaps
from incdsi.errors import InvalidInput, NotAllowed, ServerError
from incdsi.index import Index
from incdsi.server.settings import ServerSettings
from incdsi.server.shelf import Encoders, Shelf
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from tests.index.index_samples import TOY, docs
from tests.server.servers import KEY, READ_KEY, make, several

SHOP_KEY, SHOP_READ = "a-key-for-the-shop-alone", "a-read-key-of-the-shop"
KEYS = {"key": KEY, "read_key": READ_KEY, "keys": {"shop": {"key": SHOP_KEY, "read_key": SHOP_READ}}}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Indexes `shop` (five documents) and `wiki` (three)."""
    for name, count in (("shop", 5), ("wiki", 3)):
        with make(tmp_path / "indexes" / name) as index:
            index.add_many(docs(count))
    return tmp_path / "indexes"


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_each_index_is_served_under_its_name_and_the_server_lists_them(folder: Path) -> None:
    with several(folder) as url, RemoteIndex(f"{url}/shop") as shop, RemoteIndex(f"{url}/wiki/") as wiki:
        assert (len(shop), len(wiki)) == (5, 3)
        shop.add({"id": "a/b", "text": "a kite for the windy valley"}, ["kite"])
        assert shop.get("a/b").text == "a kite for the windy valley"
        assert [hit.document_id for hit in shop.search("kite", 1)] == ["a/b"]
        assert "a/b" not in wiki
        wiki.delete("d1")
        listed = httpx2.get(f"{url}/v1/indexes").json()["indexes"]
        assert [(one["name"], one["status"], one["documents"]) for one in listed] == [
            ("shop", "open", 6),
            ("wiki", "open", 2),
        ]
        assert httpx2.get(f"{url}/shop/v1/info").json()["name"] == "shop"


def test_a_page_and_an_api_for_each_and_for_all(folder: Path) -> None:
    with several(folder) as url, httpx2.Client(base_url=url) as http:
        sent = http.get("/shop?q=tent")
        assert (sent.status_code, sent.headers["location"]) == (307, "shop/?q=tent")
        assert 'id="query"' in http.get("/shop/").text
        assert http.get("/shop/page/main.js").status_code == http.get("/page/indexes.js").status_code == 200
        assert 'id="query"' not in http.get("/").text
        assert http.get("/shop/openapi.json").json()["servers"] == [{"url": "/shop"}]
        described = http.get("/openapi.json").json()
        assert described == http.get("/openapi.json").json()
        assert {"/v1/indexes", "/metrics", "/{index}/v1/search", "/{index}/v1/documents/{id}"} <= described[
            "paths"
        ].keys()
        ids = [one["operationId"] for methods in described["paths"].values() for one in methods.values()]
        assert len(ids) == len(set(ids))
        for path in ("/healthz", "/readyz", "/shop/healthz", "/wiki/readyz", "/docs", "/wiki/docs"):
            assert http.get(path).status_code == 200, path


@pytest.mark.parametrize(
    "path",
    ["/nope/v1/info", "/v1/search", "/v1/version", "/../v1/info", "/%2e%2e/v1/info", "/.hidden/v1/info", "/shop2/"],
)
def test_what_is_no_index_is_a_problem_that_says_where_to_look(folder: Path, path: str) -> None:
    make(folder / ".hidden").close()
    with several(folder) as url:
        answer = httpx2.get(url + path)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "GET /v1/indexes lists them" in answer.json()["detail"]


def test_a_key_of_an_index_opens_that_one_and_the_servers_keys_open_all(folder: Path) -> None:
    document = {"id": "new", "text": "new"}
    with several(folder, **KEYS) as url:

        def status(method: str, path: str, key: str | None, **given: Any) -> int:
            return httpx2.request(method, url + path, headers=bearer(key) if key else {}, **given).status_code

        def listed(key: str) -> list[tuple[str, str]]:
            found = httpx2.get(f"{url}/v1/indexes", headers=bearer(key)).json()["indexes"]
            return [(one["name"], one["access"]) for one in found]

        for name in ("shop", "wiki", "nope"):
            assert status("GET", f"/{name}/v1/info", None) == 401
            assert status("GET", f"/{name}/v1/info", "a-wrong-key-for-this") == 401
        assert [status("GET", f"/{name}/v1/info", SHOP_READ) for name in ("shop", "wiki", "nope")] == [200, 401, 401]
        assert [status("GET", f"/{name}/v1/info", READ_KEY) for name in ("shop", "wiki", "nope")] == [200, 200, 404]
        assert status("POST", "/shop/v1/documents", SHOP_READ, json=document) == 403
        assert status("POST", "/shop/v1/documents", READ_KEY, json=document) == 403
        assert status("POST", "/wiki/v1/documents", SHOP_KEY, json=document) == 401
        assert status("POST", "/shop/v1/documents", SHOP_KEY, json=document) == 201
        assert status("POST", "/wiki/v1/documents", KEY, json=document) == 201
        assert listed(KEY) == [("shop", "write"), ("wiki", "write")]
        assert listed(READ_KEY) == [("shop", "read"), ("wiki", "read")]
        assert listed(SHOP_READ) == [("shop", "read")]
        assert status("GET", "/v1/indexes", None) == status("GET", "/v1/indexes", "a-wrong-key-for-this") == 401
        assert (status("GET", "/metrics", SHOP_KEY), status("GET", "/metrics", READ_KEY)) == (401, 200)
        with RemoteIndex(f"{url}/wiki", key=SHOP_KEY) as index, pytest.raises(NotAllowed):
            index.search("boots")


def test_an_index_that_cannot_be_opened_says_so_and_the_others_are_served(folder: Path) -> None:
    (folder / "shop" / "store.db").write_bytes(b"this is no store" * 100)
    with several(folder, **KEYS) as url:
        broken = httpx2.get(f"{url}/shop/v1/info", headers=bearer(SHOP_KEY))
        assert (broken.status_code, broken.json()["error"]) == (503, "ServerError")
        assert broken.json()["detail"].startswith("index 'shop' cannot be opened: ")
        assert str(folder) not in broken.text
        assert httpx2.get(f"{url}/shop/v1/info").status_code == 401
        with RemoteIndex(f"{url}/shop", key=KEY) as shop, pytest.raises(ServerError, match="cannot be opened"):
            shop.search("boots")
        with RemoteIndex(f"{url}/wiki", key=KEY) as wiki:
            assert len(wiki) == 3
        listed = httpx2.get(f"{url}/v1/indexes", headers=bearer(KEY))
        assert [one["status"] for one in listed.json()["indexes"]] == ["unavailable", "open"]
        assert str(folder) not in listed.text
        assert httpx2.get(f"{url}/readyz").status_code == 200


def test_logs_are_kept_apart(folder: Path, tmp_path: Path) -> None:
    logs = {"log_queries": tmp_path / "logs" / "queries", "log_clicks": tmp_path / "logs" / "clicks"}
    with several(folder, **logs) as url, RemoteIndex(f"{url}/shop") as shop, RemoteIndex(f"{url}/wiki") as wiki:
        shop.search("xylophone")
        wiki.teach("harp", "d1")
        assert (kept_gaps(shop).queries, kept_gaps(wiki).queries) == (1, 0)
    assert json.loads((logs["log_queries"] / "shop.jsonl").read_text())["query"] == "xylophone"
    assert json.loads((logs["log_clicks"] / "wiki.jsonl").read_text())["query"] == "harp"
    assert {path.name for path in logs["log_clicks"].iterdir()} == {"wiki.jsonl"}
    assert stat.S_IMODE(logs["log_clicks"].stat().st_mode) == 0o700


def test_metrics_and_figures_are_those_of_each_index(folder: Path) -> None:
    with several(folder) as url:
        httpx2.post(f"{url}/shop/v1/search", json={"query": "boots"})
        families = {one.name: one for one in text_string_to_metric_families(httpx2.get(f"{url}/metrics").text)}
        counts = {one.labels["index"]: one.value for one in families["incdsi_documents"].samples}
        assert counts == {"shop": 5.0, "wiki": 3.0}
        searches = {
            one.labels["index"]: one.value
            for one in families["incdsi_search_seconds"].samples
            if one.name.endswith("count")
        }
        assert searches == {"shop": 1.0, "wiki": 0.0}
        assert httpx2.get(f"{url}/wiki/v1/figures").json()["searches"] == 0
        assert 'index="' not in httpx2.get(f"{url}/shop/metrics").text


def test_rates_are_limited_for_each_index(folder: Path) -> None:
    with several(folder, rate=0.001, burst=3) as url:
        assert [httpx2.get(f"{url}/shop/healthz").status_code for _ in range(4)] == [200, 200, 200, 429]
        assert httpx2.get(f"{url}/wiki/healthz").status_code == 200


def test_indexes_under_the_same_encoder_share_one(tmp_path: Path, exported: OnnxEncoder) -> None:
    for name in ("a", "b"):
        Index.create(tmp_path / name, exported).close()
    encoders = Encoders()
    with encoders.open(tmp_path / "a") as one, encoders.open(tmp_path / "b") as other:
        assert one._session.encoder is other._session.encoder


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"keys": {"shop": {"key": SHOP_KEY}}}, "keys requires key as well"),
        ({"key": KEY, "keys": {"shop": {"key": "short"}}}, "a key needs at least 16"),
        ({"key": KEY, "keys": {"shop": {"key": KEY}}}, "two of the keys that open 'shop' are the same"),
        ({"host": "0.0.0.0"}, "listening on 0.0.0.0 requires a key"),
        ({"key": KEY, "keys": {"shop": {"keys": KEY}}}, "keys.shop"),
    ],
)
def test_settings_that_would_leave_an_index_open_are_refused(
    folder: Path, given: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INCDSI_INDEXES", str(folder))
    with pytest.raises(InvalidInput, match=sentence):
        ServerSettings.load(None, given)


def test_keys_may_come_from_the_file_or_the_environment(folder: Path, tmp_path: Path, monkeypatch: Any) -> None:
    config = tmp_path / "incdsi.toml"
    config.write_text(f'indexes = "{folder}"\nkey = "{KEY}"\n[keys.shop]\nkey = "{SHOP_KEY}"\n')
    assert ServerSettings.load(config, {}).of("shop").access(SHOP_KEY) == "write"
    assert ServerSettings.load(config, {}).of("wiki").access(SHOP_KEY) is None
    monkeypatch.setenv("INCDSI_KEYS", json.dumps({"wiki": {"key": SHOP_KEY, "read_key": SHOP_READ}}))
    settings = ServerSettings.load(config, {})
    assert settings.of("wiki").access(SHOP_READ) == "read"
    assert settings.of_one().access(SHOP_KEY) is None


@pytest.mark.parametrize(
    ("place", "keys", "sentence"),
    [
        ("shop", {}, "is itself an index; serve it with --index"),
        ("nowhere", {}, "no folder"),
        ("empty", {}, "no index in"),
        (".", {"shpo": {"key": SHOP_KEY}}, "there are keys for 'shpo', but the indexes in .* are shop, wiki"),
    ],
)
def test_a_folder_that_cannot_be_served_is_one_sentence(
    folder: Path, place: str, keys: dict[str, Any], sentence: str
) -> None:
    (folder / "empty").mkdir()
    settings = ServerSettings(indexes=folder / place, key=KEY, keys=keys)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=sentence), Shelf(settings):
        pass


@pytest.mark.parametrize("name", ["v1", "page", "metrics", "a b", "ä", "-x", "x" * 65])
def test_a_name_that_cannot_be_part_of_an_address_is_passed_over(folder: Path, name: str) -> None:
    (folder / "wiki").rename(folder / name)
    with Shelf(ServerSettings(indexes=folder), lambda path: Index.open(path, TOY)) as shelf:
        assert [*shelf.open, *shelf.broken] == ["shop"]


def test_the_command_serves_a_folder_of_indexes(tmp_path: Path, exported: OnnxEncoder) -> None:
    for name in ("shop", "wiki"):
        Index.create(tmp_path / name, exported).close()
    command = [sys.executable, "-c", "from incdsi.cli import main; main()"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INCDSI_")}
    serving = [*command, "serve", "--indexes", str(tmp_path), "--port", "0", "--json"]
    with subprocess.Popen(
        serving, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        asked = ["search", "boots", "--index"]
        found = subprocess.run(
            [*command, *asked, f"{said['address']}/shop", "--json"], capture_output=True, text=True, check=True
        )
        unnamed = subprocess.run([*command, *asked, said["address"]], capture_output=True, text=True, check=False)
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    assert (process.returncode, said["index"]) == (0, str(tmp_path)), log
    assert json.loads(found.stdout)["hits"] == []
    assert unnamed.returncode == 1
    assert "has several indexes; name one: " in unnamed.stderr
