"""/v1/search, /v1/teach, /v1/info, /v1/figures, /v1/map, /metrics, the page."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from incdsi.documents import Document
from incdsi.index import Index
from incdsi.info import Info, Quality
from incdsi.server.figures import Observer, Recorder, advice
from incdsi.server.projection import MOST_POINTS, Axes, Projection
from incdsi.server.schemas import QualityPoint
from tests.index.index_samples import TOY, asked_for, docs
from tests.server.conftest import Start
from tests.server.servers import running
from tests.server.test_server_documents import problem

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@pytest.fixture
def filled(http: httpx2.Client, index: Index) -> httpx2.Client:
    some = docs(30)
    index.add_many(some, asked_for(some))
    return http


def test_a_hit_has_its_snippet_and_a_long_document_its_passages_in_place_of_its_text(
    http: httpx2.Client, index: Index
) -> None:
    sections = (f"## About {word}\n" + f"The {word} of this boot is {word}. " * 80 for word in ("wax", "lace", "sole"))
    manual = Document(id="manual", title="Boots", text="\n".join(sections))
    index.add_many([manual, Document(id="short", text="A lace.")])

    def found(**asked: object) -> dict[str, dict[str, Any]]:
        answer = http.post("/v1/search", json={"query": "lace", **asked}).json()
        return {hit["document"]["id"]: hit for hit in answer["hits"]}

    long, short = found()["manual"], found()["short"]
    assert (long["document"]["text"], short["document"]["text"], short["passages"]) == (None, "A lace.", [])
    assert short["snippet"] == {"text": "A lace.", "marks": [[2, 6]]}
    (passage,) = long["passages"]
    assert passage["headings"] == ["About lace"]
    assert passage["text"] == manual.text[passage["start"] : passage["end"]]
    assert long["snippet"] == passage["snippet"]
    assert len(http.post("/v1/search", json={"query": "lace"}).content) < 5000 < len(manual.text)
    assert found(texts="all")["manual"]["document"]["text"] == manual.text
    assert found(texts="none")["short"]["document"]["text"] is None
    assert len(found(passages=3)["manual"]["passages"]) == 3


def test_hits_are_those_of_the_index_with_the_parts_of_their_scores(filled: httpx2.Client, index: Index) -> None:
    for mode in ("fused", "learned", "lexical"):
        asked = {"query": "waterproof boots in the rain", "k": 7, "mode": mode, "where": {"lang": "en"}}
        found = filled.post("/v1/search", json=asked).json()
        expected = index.search(asked["query"], 7, {"lang": "en"}, mode)
        got = [(hit["rank"], hit["document"]["id"], hit["score"]) for hit in found["hits"]]
        assert got == [(hit.rank, hit.document_id, hit.score) for hit in expected]
        assert found["version"] == index.version
        assert found["seconds"] > 0
        for hit in found["hits"]:
            parts = [hit[name] for name in ("learned", "nearest", "lexical") if hit[name] is not None]
            assert len(parts) == (3 if mode == "fused" else 1)
            assert sum(parts) == pytest.approx(hit["score"], rel=1e-5)


def test_a_search_may_stand_in_the_address(filled: httpx2.Client) -> None:
    asked = {
        "query": "waterproof boots & tents",
        "k": 4,
        "mode": "learned",
        "where": {"lang": "en", "number": {"lt": 20}},
    }
    given = {"q": asked["query"], "k": "4", "mode": "learned", "where": json.dumps(asked["where"])}
    by_body, by_address = filled.post("/v1/search", json=asked), filled.get("/v1/search", params=given)
    assert by_address.status_code == 200
    assert by_address.json() | {"seconds": 0} == by_body.json() | {"seconds": 0}
    assert len(filled.get("/v1/search?q=snow").json()["hits"]) == 10
    assert by_address.headers["etag"] == by_body.headers["etag"]
    for wrong, words in (
        ("", "q"),
        ("?q=", "q"),
        ("?q=snow&k=0", "k"),
        ("?q=snow&k=many", "k"),
        ("?q=snow&mode=best", "mode"),
        ("?q=snow&where=lang", "where must be a JSON object"),
        ("?q=snow&where=[1]", "where must be a JSON object"),
        ('?q=snow&where={"a":{"near":1}}', "near"),
        ("?q=snow&K=3", "K"),
        ("?q=snow&least=2", "least"),
    ):
        assert words in problem(filled.get(f"/v1/search{wrong}"), 422, "InvalidInput")
    assert "longer than" in problem(filled.get("/v1/search", params={"q": "x" * 3000}), 413, "TooLarge")


def test_a_least_confidence_is_refused_while_there_is_none(filled: httpx2.Client) -> None:
    answer = filled.post("/v1/search", json={"query": "snow", "least": 0.5})
    assert answer.status_code == 422
    assert "cannot tell how confident it is yet" in answer.json()["detail"]
    assert filled.post("/v1/search", json={"query": "snow", "least": 1.5}).status_code == 422
    assert filled.post("/v1/search", json={"query": "snow"}).json()["hits"][0]["confidence"] is None


def test_many_queries_are_answered_in_order(filled: httpx2.Client, index: Index) -> None:
    texts = ["snow", "a river at night", "tent"]
    found = filled.post("/v1/search", json={"queries": texts, "k": 3}).json()
    assert [one["query"] for one in found["results"]] == texts
    for text, one in zip(texts, found["results"], strict=True):
        assert [hit["document"]["id"] for hit in one["hits"]] == [hit.document_id for hit in index.search(text, 3)]


def test_searches_at_the_same_time_are_each_answered_as_if_alone(filled: httpx2.Client, index: Index) -> None:
    texts = ["a river", "mountain boots that are dry", "sea", "who won the deep river sea", "dry"]
    asked = [{"query": text, "k": k, "mode": mode} for text in texts for k in (1, 3) for mode in ("fused", "learned")]
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = list(pool.map(lambda one: filled.post("/v1/search", json=one).json(), 3 * asked))
    for one, answer in zip(3 * asked, answers, strict=True):
        hits = index.search(str(one["query"]), int(one["k"]), mode=str(one["mode"]))
        assert answer["query"] == one["query"]
        assert [(hit["document"]["id"], hit["score"]) for hit in answer["hits"]] == [
            (hit.document_id, hit.score) for hit in hits
        ]


def test_a_search_that_cannot_be_right_is_refused(filled: httpx2.Client) -> None:
    for wrong in (
        {},
        {"query": ""},
        {"query": "  "},
        {"query": "a", "queries": ["b"]},
        {"query": "a", "k": 0},
        {"query": "a", "k": 10**6},
        {"query": "a", "mode": "best"},
        {"query": "a", "where": {"n": {"near": 3}}},
        {"query": 3},
    ):
        problem(filled.post("/v1/search", json=wrong), 422, "InvalidInput")


def test_teaching_says_the_rank_before_and_after(filled: httpx2.Client, index: Index) -> None:
    query = "something for a long walk"
    last = index.search(query, 30)[-1].document_id
    found = filled.post("/v1/teach", json={"query": query, "id": last}).json()
    assert (found["rank_before"], found["rank_after"]) == (30, index.search(query, 30)[0].rank)
    assert index.search(query)[0].document_id == last
    assert found["milliseconds"] > 0
    assert found["margin"] is not None
    problem(filled.post("/v1/teach", json={"query": query, "id": "gone"}), 404, "UnknownDocument")


def test_info_is_that_of_the_index_and_says_what_the_caller_may_do(filled: httpx2.Client, index: Index) -> None:
    found = filled.get("/v1/info").json()
    for name, value in asdict(index.info()).items():
        assert found[name] == value
    assert found["access"] == "write"
    assert found["limits"]["batch"] == 1000
    assert filled.get("/v1/version").json()["documents"] == 30


def test_figures_count_and_follow_the_quality(tmp_path: Path) -> None:
    some = docs(60)
    with Index.create(tmp_path / "shop", TOY) as index:
        index.add_many(some[:50], asked_for(some[:50], 3))  # three queries each: some are held out
    with Index.open(tmp_path / "shop", TOY) as index, running(index, tmp_path / "shop", quality_seconds=0.05) as url:
        http = httpx2.Client(base_url=url)
        with http:
            for document in some[50:53]:
                http.post("/v1/documents", json={"id": document.id, "text": document.text})
            http.post("/v1/search", json={"query": "tent"})
            http.delete(f"/v1/documents/{some[0].id}")
            http.post("/v1/teach", json={"query": "far away", "id": some[1].id})
            for _ in range(200):
                found = http.get("/v1/figures").json()
                if found["quality"] and found["quality"][-1]["version"] == found["version"]:
                    break
                time.sleep(0.1)
            quality = found["quality"][-1]["quality"]
            expected = index.info()
    assert [found[name] for name in ("documents", "additions", "searches", "deleted", "taught")] == [52, 3, 1, 1, 1]
    assert found["p50_add_ms"] > 0
    assert found["p50_search_ms"] > 0
    assert quality == {name: asdict(one) for name, one in expected.quality.items()}
    assert set(quality) == {"learned", "lexical", "fused", "dense"}


def point(learned: float, dense: float, queries: int = 100) -> QualityPoint:
    def of(mrr: float) -> Quality:
        return Quality(hits_at_1=mrr, hits_at_10=mrr, mrr_at_10=mrr, queries=queries)

    quality = {"learned": of(learned), "dense": of(dense)}
    return QualityPoint(at="2024-05-01T12:00:00Z", documents=1, additions=0, version=1, quality=quality)


def test_advice_is_given_when_learned_search_falls_and_not_before() -> None:
    assert advice([]) is None
    assert advice([point(60, 50), point(58, 50)]) is None
    assert "60.0 to 55.0" in (advice([point(60, 50), point(55, 50)]) or "")
    assert "incdsi tune" in (advice([point(50, 52)]) or "")
    assert advice([point(60, 50, 5), point(40, 50, 5)]) is None


def test_the_map_keeps_its_axes_while_documents_come(filled: httpx2.Client, index: Index) -> None:
    before = filled.get("/v1/map").json()
    assert len(before["points"]) == before["documents"] == 30
    index.add_many(docs(10, start=100))
    after = filled.get("/v1/map").json()
    assert after["axes"] == before["axes"]
    old = {one["id"]: (one["x"], one["y"]) for one in before["points"]}
    new = {one["id"]: (one["x"], one["y"]) for one in after["points"]}
    assert all(new[id] == place for id, place in old.items())
    assert all(abs(value) <= 1.5 for place in new.values() for value in place)
    index.add_many(docs(40, start=200))
    assert filled.get("/v1/map").json()["axes"] != before["axes"]


def test_neighbours_are_the_most_similar_documents(filled: httpx2.Client, index: Index) -> None:
    ids, vectors = index.engine.vectors()
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    here = ids.index("d3")
    order = [ids[place] for place in np.argsort(-(unit @ unit[here])) if place != here]
    found = filled.get("/v1/map", params={"near": "d3", "k": 5}).json()
    assert [one["id"] for one in found["neighbours"]] == order[:5]
    assert found["point"]["id"] == "d3"
    problem(filled.get("/v1/map", params={"near": "gone"}), 404, "UnknownDocument")
    problem(filled.get("/v1/map", params={"k": 0}), 422, "InvalidInput")


def test_the_axes_are_the_principal_components() -> None:
    vectors = np.random.default_rng(0).standard_normal((200, 6)) * np.array([5, 3, 1, 0.1, 0.1, 0.1])
    axes = Axes.fit(vectors.astype(np.float32), 1, 200)
    _, _, right = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)
    assert np.abs(np.sum(axes.directions.T * right[:2], axis=1)) == pytest.approx([1, 1], abs=1e-4)
    assert np.quantile(np.abs(axes.place(vectors.astype(np.float32))), 0.98) == pytest.approx(1, abs=0.05)


def test_the_map_shows_the_title_a_document_has_now(http: httpx2.Client) -> None:
    for title in ("boots", "BOOTS", "x" * 1000):  # the first two are the same to the encoder
        http.put("/v1/documents/a", json={"title": title, "text": "for a river"})
        assert [one["title"] for one in http.get("/v1/map").json()["points"]] == [title[:200]]
        assert http.get("/v1/map", params={"near": "a"}).json()["point"]["title"] == title[:200]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_map_of_almost_nothing(index: Index, count: int) -> None:
    index.add_many(docs(count))
    drawn = Projection(index).points()
    assert len(drawn.points) == count <= MOST_POINTS
    assert all(np.isfinite([one.x, one.y]).all() for one in drawn.points)


def test_metrics_parse_and_count(filled: httpx2.Client, index: Index) -> None:
    filled.post("/v1/documents", json={"id": "new", "text": "a new lamp"})
    filled.post("/v1/search", json={"query": "lamp"})
    families = {one.name: one for one in text_string_to_metric_families(filled.get("/metrics").text)}
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for one in families.values()
        for sample in one.samples
    }
    assert values["incdsi_documents",] == len(index) == 31
    assert values["incdsi_version",] == index.version
    assert values["incdsi_add_seconds_count",] == values["incdsi_search_seconds_count",] == 1
    assert values["incdsi_queue_waiting",] == 0
    for name, parts in (("add", ("encode", "solve", "commit")), ("search", ("encode", "learned", "lexical", "read"))):
        for part in parts:
            assert values[f"incdsi_{name}_part_seconds_count", part] == 1
    assert values["incdsi_requests_total", "/v1/documents", "201"] == 1
    assert "incdsi_conflicts" in families


def test_an_index_that_does_not_answer_holds_up_nobody_else(
    start: Start, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    http, gate, asked = start(threads=8), threading.Event(), threading.Semaphore(0)

    def stuck(index: Index) -> int:
        asked.release()
        gate.wait(30)
        return 0

    paths = ("/v1/version", "/v1/figures", "/metrics", "/readyz", "/v1/info", "/v1/documents/a")
    with monkeypatch.context() as patched, ThreadPoolExecutor(len(paths)) as pool:
        patched.setattr(Index, "__len__", stuck)
        patched.setattr(Index, "version", property(stuck))
        waiting = []
        for path in paths:
            waiting.append(pool.submit(http.get, path))
            assert asked.acquire(timeout=30)
            assert http.get("/healthz").status_code == 200
            assert http.get("/").status_code == 200
        gate.set()
        assert [one.result().status_code for one in waiting] == [200] * 5 + [404]


def test_looking_at_the_quality_goes_on_after_a_failure(index: Index) -> None:
    failed, looked = threading.Event(), threading.Event()

    def info() -> Info:
        if not failed.is_set():
            failed.set()
            raise MemoryError("not now")
        looked.set()
        return index.info()

    observer = Observer(info, index, Recorder(), lambda: 10.0)
    observer.start(0.01)
    assert looked.wait(30)
    observer.close()


def test_health_and_safe_headers(http: httpx2.Client) -> None:
    for path in ("/healthz", "/readyz"):
        assert http.get(path).json() == {"status": "ok"}
    headers = http.get("/v1/version", headers={"X-Request-ID": "mine-1"}).headers
    assert headers["x-request-id"] == "mine-1"
    assert headers["content-security-policy"] == PAGE_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
    assert http.get("/healthz", headers={"X-Request-ID": 'bad "id"'}).headers["x-request-id"] != 'bad "id"'
    assert "access-control-allow-origin" not in http.get("/healthz", headers={"Origin": "http://evil.example"}).headers


def test_the_page_is_served_by_name_only(http: httpx2.Client) -> None:
    home = http.get("/")
    assert home.status_code == 200
    assert home.headers["content-type"].startswith("text/html")
    assert home.headers["content-security-policy"] == PAGE_POLICY
    assert http.get("/", headers={"If-None-Match": home.headers["etag"]}).status_code == 304
    for trick in ("../schemas.py", "%2e%2e%2fschemas.py", "..%5cschemas.py", "/etc/passwd", "a/", "index.html%00"):
        assert http.get(f"/page/{trick}").status_code == 404


def test_other_pages_may_call_when_they_are_allowed(start: Start) -> None:
    http = start(cors_origins=["https://shop.example"])
    asked = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    allowed = http.options("/v1/search", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == "https://shop.example"
    refused = http.options("/v1/search", headers=asked | {"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in refused.headers
