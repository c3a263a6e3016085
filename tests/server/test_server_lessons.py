"""Clicks and queries are kept only where the server was told to, learned from, and looked through for gaps."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import httpx2
import pytest

from incdsi.clicks import Click, Outcome
from incdsi.client import RemoteIndex, kept_gaps
from incdsi.errors import InvalidInput, NotAllowed, NotFound
from incdsi.index import Index
from incdsi.server.logbook import Logbook
from tests.index.index_samples import docs
from tests.server.servers import KEY, READ_KEY, make, running


@pytest.fixture
def shop(tmp_path: Path) -> Index:
    index = make(tmp_path / "shop")
    index.add_many(docs(5))
    return index


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_nothing_is_kept_unless_the_server_was_told_to(shop: Index, tmp_path: Path) -> None:
    with running(shop, tmp_path / "shop") as url, RemoteIndex(url) as index:
        index.search("boots")
        assert httpx2.post(f"{url}/v1/clicks", json={"query": "boots", "id": "d1"}).status_code == 404
        with pytest.raises(NotFound, match="start it with --log-clicks FILE"):
            index.learn(None)
        with pytest.raises(NotFound, match="start it with --log-queries FILE"):
            kept_gaps(index)
    assert {path.name for path in tmp_path.iterdir()} == {"shop"}
    shop.close()


def test_clicks_are_kept_and_then_learned_from(shop: Index, tmp_path: Path) -> None:
    log = tmp_path / "clicks.jsonl"
    with running(shop, tmp_path / "shop", log_clicks=log) as url, RemoteIndex(url) as index:
        for id in ("d1", "d1", "d2"):
            answer = httpx2.post(f"{url}/v1/clicks", json={"query": "dry feet", "id": id})
            assert (answer.status_code, answer.json()["kept"]) == (200, True)
        assert httpx2.post(f"{url}/v1/clicks", json={"query": "dry feet", "id": "gone"}).status_code == 422
        version = index.version
        plan = index.learn(None, dry_run=True)
        assert (plan.dry_run, plan.count(Outcome.LEARNED), index.version) == (True, 1, version)
        assert index.learn(None).count(Outcome.LEARNED) == 1
        assert index.search("dry feet")[0].document_id == "d1"
        again = index.learn(None)
        assert (again.count(Outcome.KNOWN), again.version) == (1, index.version)
        index.teach("warm hands", "d3")  # what the page's "this is the one" sends
    assert [(line["query"], line["id"]) for line in lines(log)] == [
        ("dry feet", "d1"),
        ("dry feet", "d1"),
        ("dry feet", "d2"),
        ("warm hands", "d3"),
    ]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    shop.close()


def test_a_read_key_may_click_but_neither_teach_nor_see_what_others_asked(shop: Index, tmp_path: Path) -> None:
    kept = {"log_clicks": tmp_path / "clicks.jsonl", "log_queries": tmp_path / "queries.jsonl"}
    with running(shop, tmp_path / "shop", key=KEY, read_key=READ_KEY, **kept) as url:
        reading = {"Authorization": f"Bearer {READ_KEY}"}
        assert httpx2.post(f"{url}/v1/clicks", json={"query": "a", "id": "d1"}, headers=reading).status_code == 200
        assert httpx2.post(f"{url}/v1/learn", json={}, headers=reading).status_code == 403
        assert httpx2.get(f"{url}/v1/gaps", headers=reading).status_code == 403
        with RemoteIndex(url, key=READ_KEY) as index, pytest.raises(NotAllowed):
            kept_gaps(index)
        with RemoteIndex(url, key=KEY) as index:
            assert kept_gaps(index).queries == 0
    shop.close()


def test_gaps_come_from_the_queries_that_were_kept(shop: Index, tmp_path: Path) -> None:
    log = tmp_path / "queries.jsonl"
    with running(shop, tmp_path / "shop", log_queries=log) as url, RemoteIndex(url) as index:
        index.search_many(["xylophone", "boots"], 1)
        index.search("xylophone")
        (line, *_), count = lines(log), len(lines(log))
        found = kept_gaps(index, k=2)
        assert len(lines(log)) == count, "looking for gaps must not be asking"
        assert (found.queries, found.judged_by) == (2, "words")
        (gap,) = found.gaps
        assert (gap.query, gap.times, len(gap.candidates)) == ("xylophone", 2, 2)
        index.teach("xylophone", "d2")
        assert kept_gaps(index).gaps == ()
        assert httpx2.get(f"{url}/v1/gaps?least=2").status_code == 422
        count = len(lines(log))
        httpx2.post(f"{url}/v1/search", json={"query": "xyl", "log": False}).raise_for_status()  # half typed
        httpx2.get(f"{url}/v1/search", params={"q": "xyl", "log": "false"}).raise_for_status()
        assert len(lines(log)) == count
    assert set(line) == {"at", "query", "id", "confidence"}
    shop.close()


def test_clicks_are_sent_in_portions_that_keep_a_query_whole(
    shop: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.client.calls.PAIRS", 3)
    clicks = [Click(f"query {n}", f"d{id}", 1 + id) for n in range(5) for id in range(4)]
    with running(shop, tmp_path / "shop") as url, RemoteIndex(url) as index:
        told: list[tuple[int, int]] = []
        plan = index.learn(clicks, share=0.4, dry_run=True, progress=lambda *done: told.append(done))
        assert told[-1] == (5, 5)
    assert plan.lessons == shop.learn(clicks, share=0.4, dry_run=True).lessons
    assert plan.count(Outcome.LEARNED) == 5
    shop.close()


def test_bad_requests_are_refused(shop: Index, tmp_path: Path) -> None:
    with running(shop, tmp_path / "shop", log_clicks=tmp_path / "c.jsonl") as url, RemoteIndex(url) as index:
        none = (
            {"query": "", "id": "d1"},
            {"query": " ", "id": "d1"},
            {"query": "a"},
            {"query": "a", "id": "d", "count": 0},
        )
        for body in none:
            assert httpx2.post(f"{url}/v1/clicks", json=body).status_code == 422
        assert httpx2.post(f"{url}/v1/learn", json={"share": 0}).status_code == 422
        with pytest.raises(InvalidInput, match="clicks"):
            index.learn([Click("a", "d1")], least=0)
    shop.close()


def test_a_log_stays_within_its_bounds_and_keeps_the_newest(tmp_path: Path) -> None:
    book = Logbook(tmp_path / "log.jsonl", 1000)
    for number in range(200):
        book.note(query=f"query {number} \ud800")
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) <= 1000
    kept = [line["query"] for line in book.lines("--flag")]
    assert kept == [f"query {number} ?" for number in range(200 - len(kept), 200)]


def test_a_log_passes_over_what_is_not_its_own_and_never_stops_a_search(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(b'{"query": "a"}\n[1]\n{"query": "cut by a cra')
    assert list(Logbook(tmp_path / "log.jsonl", 1000).lines("--flag")) == [{"query": "a"}]
    Logbook(tmp_path / "missing" / "log.jsonl", 1000).note(query="a")  # only the server's log tells
    assert list(Logbook(tmp_path / "none.jsonl", 1000).lines("--flag")) == []
