"""/v1/documents over a real socket."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from incdsi.documents import Document, Taught
from incdsi.errors import InvalidDocument
from incdsi.index import Index
from incdsi.server.problems import without_folder
from tests.index.index_samples import TOY
from tests.mounts import read_only
from tests.server.conftest import Start
from tests.server.servers import running

BOOTS = {"id": "boots", "title": "Boots", "text": "waterproof boots for a river", "metadata": {"lang": "en"}}
NDJSON = {"Content-Type": "application/x-ndjson"}


def problem(answer: httpx2.Response, status: int, error: str) -> str:
    """The sentence of a problem, checked for its form."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = answer.json()
    assert found["status"] == status
    assert found["error"] == error
    assert found["type"] == f"urn:incdsi:problem:{error}"
    assert found["request_id"] == answer.headers["x-request-id"]
    return str(found["detail"])


def test_a_document_is_added_read_changed_and_deleted(http: httpx2.Client, index: Index) -> None:
    added = http.post("/v1/documents", json={**BOOTS, "queries": ["dry feet"]})
    assert added.status_code == 201
    assert added.json()["additions"][0]["id"] == "boots"
    assert added.headers["etag"] == f'"{index.version}"'

    found = http.get("/v1/documents/boots")
    assert found.json() == {**BOOTS, "queries": ["dry feet"], "taught": [], "version": index.version}

    changed = http.patch("/v1/documents/boots", json={"title": "Old boots"})
    assert (changed.status_code, changed.json()["created"]) == (200, False)
    assert http.get("/v1/documents/boots").json()["text"] == BOOTS["text"]
    assert http.put("/v1/documents/boots", json={"text": "new text"}).status_code == 200
    assert index.get("boots") == Document(id="boots", text="new text")

    assert http.delete("/v1/documents/boots").json()["deleted"] == 1
    assert "boots" not in problem(http.get("/v1/documents/other"), 404, "UnknownDocument")
    assert len(index) == 0


def test_a_put_of_what_was_read_undoes_a_delete(http: httpx2.Client, index: Index) -> None:
    http.post("/v1/documents", json={**BOOTS, "queries": ["dry feet"]})
    http.post("/v1/teach", json={"query": "survives the rain", "id": "boots"})
    before = http.get("/v1/documents/boots").json()
    http.delete("/v1/documents/boots")
    body = {name: before[name] for name in ("title", "text", "metadata", "queries", "taught")}
    assert (body["queries"], body["taught"]) == (["dry feet", "survives the rain"], ["survives the rain"])
    again = http.put("/v1/documents/boots", json=body)
    assert (again.status_code, again.json()["created"]) == (201, True)
    after = http.get("/v1/documents/boots").json()
    assert after | {"version": 0} == before | {"version": 0}


def test_lists_go_over_the_wire_and_filters_find_them(http: httpx2.Client, index: Index) -> None:
    rows = [{"id": "a", "text": "boots", "metadata": {"tags": ["red", 7, None]}}, {"id": "b", "text": "more boots"}]
    http.post("/v1/documents", json={"documents": rows})
    assert http.get("/v1/documents/a").json()["metadata"] == {"tags": ["red", 7, None]}
    for where, found in ({"tags": {"$all": [7, "red"]}}, ["a"]), ({"tags": {"exists": False}}, ["b"]):
        hits = http.post("/v1/search", json={"query": "boots", "where": where}).json()["hits"]
        assert [hit["document"]["id"] for hit in hits] == found


def test_what_is_sent_as_taught_is_taught_by_every_path(http: httpx2.Client, index: Index) -> None:
    rows = [{"id": f"d{number}", "text": f"boots for the rain {number}"} for number in range(20)]
    http.post("/v1/documents", json={"documents": rows})
    http.post("/v1/documents", json={**BOOTS, "taught": ["zebra one"]})
    http.post("/v1/documents", json={"documents": [{"id": "many", "text": "tent", "taught": ["zebra two"]}]})
    http.post("/v1/documents", content=b'{"id": "line", "text": "rope", "taught": ["zebra three"]}', headers=NDJSON)
    http.put("/v1/documents/put", json={"text": "lamp", "queries": ["a light"], "taught": ["zebra four"]})
    http.patch("/v1/documents/d7", json={"taught": ["zebra five"]})
    taught = {"boots": "zebra one", "many": "zebra two", "line": "zebra three", "put": "zebra four", "d7": "zebra five"}
    for id, query in taught.items():
        assert http.get(f"/v1/documents/{id}").json()["taught"] == [query]
        assert [text for text in index.queries(id) if isinstance(text, Taught)] == [query]
    lines = [json.loads(line) for line in http.get("/v1/documents", params={"queries": True}).text.splitlines()]
    assert {line["id"]: line["taught"][0] for line in lines if line["taught"]} == taught
    problem(http.put("/v1/documents/put", json={"text": "lamp", "taught": "zebra"}), 422, "InvalidInput")
    problem(http.put("/v1/documents/put", json={"text": "lamp", "taught": ["y" * 3000]}), 413, "TooLarge")


def test_a_batch_is_added_whole_or_not_at_all(http: httpx2.Client, index: Index) -> None:
    good = [{"id": f"d{number}", "text": f"snow and wind {number}"} for number in range(3)]
    answer = http.post("/v1/documents", json={"documents": good})
    assert [one["id"] for one in answer.json()["additions"]] == ["d0", "d1", "d2"]
    mixed = [{"id": "new", "text": "tent"}, {"id": "d1", "text": "rope"}]
    assert "'d1'" in problem(http.post("/v1/documents", json={"documents": mixed}), 409, "DuplicateDocument")
    assert len(index) == 3


def test_a_batch_is_upserted_whole_or_not_at_all(http: httpx2.Client, index: Index) -> None:
    http.post("/v1/documents", json={"id": "d0", "text": "snow", "queries": ["is it cold"]})
    rows = [{"id": f"d{number}", "text": f"snow and wind {number}", "queries": ["a storm"]} for number in (1, 0, 2)]
    answer = http.post("/v1/documents/upsert", json={"documents": rows})
    assert (answer.status_code, answer.json()["created"], answer.json()["version"]) == (200, 2, index.version)
    assert [one["id"] for one in answer.json()["additions"]] == ["d1", "d0", "d2"]
    assert index.queries("d0") == ["is it cold", "a storm"]
    assert http.get("/v1/figures").json()["additions"] == 3
    again = http.post("/v1/documents/upsert", json={"documents": rows})
    assert (again.json()["created"], {one["status"] for one in again.json()["additions"]}) == (0, {"kept"})
    before = index.version
    for wrong, *refusal in (
        ({"documents": [*rows, rows[0]]}, 409, "DuplicateDocument"),
        ({"documents": [{"id": "new", "text": "x"}, {"id": "d1"}]}, 422, "InvalidInput"),
        ({"documents": []}, 422, "InvalidInput"),
        ({"id": "new", "text": "x"}, 422, "InvalidInput"),
    ):
        problem(http.post("/v1/documents/upsert", json=wrong), *refusal)
    stale = {"If-Match": f'"{before - 1}"'}
    problem(http.post("/v1/documents/upsert", json={"documents": rows}, headers=stale), 412, "VersionConflict")
    assert (index.version, len(index)) == (before, 3)


def test_a_stream_adds_what_is_sound_and_says_what_is_not(http: httpx2.Client, index: Index) -> None:
    rows = [{"id": f"s{number}", "text": f"map and compass {number}"} for number in range(150)]
    lines = [json.dumps(row) for row in rows]
    lines[3] = "no json"
    lines[70] = json.dumps({"id": "s1", "text": "twice"})
    lines[71] = json.dumps({"id": "x", "text": "lamp", "colour": "red"})
    answer = http.post("/v1/documents", content="\n".join([*lines, "", ""]).encode(), headers=NDJSON)
    found = answer.json()
    assert answer.status_code == 201
    assert (found["added"], found["refused"]) == (147, 3)
    assert sorted((one["line"], one["error"]) for one in found["refusals"]) == [
        (4, "InvalidInput"),
        (71, "DuplicateDocument"),
        (72, "InvalidInput"),
    ]
    assert len(index) == 147


def test_a_stream_is_added_while_it_arrives(http: httpx2.Client, index: Index) -> None:
    seen = []

    def lines() -> object:
        for number in range(128):
            yield json.dumps({"id": f"s{number}", "text": f"rope {number}"}).encode() + b"\n"
        for _ in range(200):  # the first portion appears although the stream has not ended
            if len(index) >= 64:
                break
            time.sleep(0.05)
            yield b"\n"
        seen.append(len(index))
        yield json.dumps({"id": "last", "text": "the last rope"}).encode()

    assert http.post("/v1/documents", content=lines(), headers=NDJSON).json()["added"] == 129
    assert seen[0] >= 64


def test_all_documents_come_as_lines(http: httpx2.Client) -> None:
    http.post("/v1/documents", json={**BOOTS, "queries": ["dry feet"]})
    http.post("/v1/documents", json={"id": "b", "text": "lamp"})
    lines = http.get("/v1/documents", params={"queries": True}).text.splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["boots", "b"]
    assert json.loads(lines[0])["queries"] == ["dry feet"]


def test_deleting_by_filter_and_by_ids(http: httpx2.Client, index: Index) -> None:
    rows = [{"id": f"d{n}", "text": f"stove {n}", "metadata": {"n": n}} for n in range(6)]
    http.post("/v1/documents", json={"documents": rows})
    assert http.post("/v1/documents/delete", json={"where": {"n": {"gte": 4}}}).json()["deleted"] == 2
    problem(http.post("/v1/documents/delete", json={"ids": ["d0", "gone"]}), 404, "UnknownDocument")
    assert len(index) == 4
    assert http.post("/v1/documents/delete", json={"ids": ["d0", "d1", "d0"]}).json()["deleted"] == 2
    problem(http.post("/v1/documents/delete", json={}), 422, "InvalidInput")
    for where in ({}, {"and": []}, {"not": {"or": []}}):
        problem(http.post("/v1/documents/delete", json={"where": where}), 422, "InvalidInput")
    assert len(index) == 2
    problem(http.post("/v1/documents/delete", json={"ids": ["d2"], "where": {}}), 422, "InvalidInput")


@pytest.mark.parametrize("id", ["a/b", "..", "%2e", "../../etc/passwd", "ü b?c#d", "delete", "a\\b", " ", "x\ny"])
def test_any_id_is_only_an_id(http: httpx2.Client, index: Index, id: str) -> None:
    from urllib.parse import quote

    path = "/v1/documents/" + quote(id, safe="").replace(".", "%2E")
    assert http.put(path, json={"text": "forest"}).status_code == 201
    assert index.get(id).text == "forest"
    assert http.get(path).json()["id"] == id
    assert http.delete(path).json()["deleted"] == 1


def test_a_write_is_refused_when_the_index_has_changed(http: httpx2.Client, index: Index) -> None:
    http.post("/v1/documents", json=BOOTS)
    old = http.get("/v1/documents/boots").headers["etag"]
    assert http.patch("/v1/documents/boots", json={"title": "a"}, headers={"If-Match": old}).status_code == 200
    for call in (
        lambda: http.patch("/v1/documents/boots", json={"title": "b"}, headers={"If-Match": old}),
        lambda: http.put("/v1/documents/boots", json={"text": "b"}, headers={"If-Match": old}),
        lambda: http.delete("/v1/documents/boots", headers={"If-Match": old}),
        lambda: http.post("/v1/documents", json={"id": "n", "text": "b"}, headers={"If-Match": old}),
        lambda: http.post("/v1/teach", json={"id": "boots", "query": "b"}, headers={"If-Match": old}),
        lambda: http.post("/v1/documents/delete", json={"ids": ["boots"]}, headers={"If-Match": old}),
    ):
        problem(call(), 412, "VersionConflict")
    assert index.get("boots").title == "a"
    problem(http.delete("/v1/documents/boots", headers={"If-Match": "yesterday"}), 400, "InvalidInput")


def test_a_put_creates_only_or_replaces_only_when_it_says_so(http: httpx2.Client, index: Index) -> None:
    path, new, there = "/v1/documents/boots", {"If-None-Match": "*"}, {"If-Match": "*"}
    problem(http.put(path, json={"text": "a"}, headers=there), 412, "UnknownDocument")
    assert len(index) == 0
    assert http.put(path, json={"text": "a"}, headers=new).status_code == 201
    problem(http.put(path, json={"text": "b"}, headers=new), 412, "DuplicateDocument")
    assert index.get("boots").text == "a"
    assert http.put(path, json={"text": "b"}, headers=there).status_code == 200
    problem(http.put(path, json={"text": "c"}, headers=new | there), 400, "InvalidInput")
    problem(http.put(path, json={"text": "c"}, headers={"If-None-Match": '"3"'}), 400, "InvalidInput")
    problem(http.patch(path, json={"text": "c"}, headers=new), 400, "InvalidInput")
    problem(http.delete("/v1/documents/gone", headers=there), 404, "UnknownDocument")
    assert http.delete(path, headers=there).status_code == 200


def test_an_index_that_cannot_be_written_is_searched_and_read(index: Index, folder: Path) -> None:
    index.add(Document(id="boots", text="waterproof boots"), ["dry feet"])
    index.close()
    writes = [
        ("POST", "/v1/documents", {"id": "a", "text": "x"}),
        ("PUT", "/v1/documents/boots", {"text": "x"}),
        ("PATCH", "/v1/documents/boots", {"text": "x"}),
        ("DELETE", "/v1/documents/boots", None),
        ("POST", "/v1/documents/delete", {"ids": ["boots"]}),
        ("POST", "/v1/teach", {"query": "rain", "id": "boots"}),
    ]
    paths = ("/v1/documents", "/v1/documents/boots", "/v1/info", "/v1/map", "/v1/figures", "/metrics", "/readyz")
    with (
        read_only(folder) as view,
        Index.open(view, TOY) as opened,
        running(opened, view) as url,
        httpx2.Client(base_url=url) as http,
    ):
        assert http.post("/v1/search", json={"query": "boots"}).json()["hits"][0]["document"]["id"] == "boots"
        assert [http.get(path).status_code for path in paths] == [200] * len(paths)
        for number, (method, path, body) in enumerate(writes):
            answer = http.request(method, path, json=body, headers={"Idempotency-Key": str(number)})
            assert "cannot be written" in problem(answer, 403, "ReadOnlyIndex")
        line = http.post("/v1/documents", content=b'{"id": "a", "text": "x"}', headers=NDJSON).json()
        assert (line["added"], line["refusals"][0]["error"]) == (0, "ReadOnlyIndex")


def test_ids_have_one_limit_wherever_they_come_in(http: httpx2.Client, index: Index) -> None:
    long, longest = "x" * 1025, "x" * 1024
    assert http.put(f"/v1/documents/{longest}", json={"text": "a"}).status_code == 201
    assert http.get(f"/v1/documents/{longest}").status_code == 200
    for answer in (
        http.put(f"/v1/documents/{long}", json={"text": "a"}),
        http.post("/v1/documents", json={"id": long, "text": "a"}),
        http.post("/v1/documents", json={"documents": [{"id": long, "text": "a"}]}),
        http.post("/v1/documents/delete", json={"ids": [long]}),
        http.post("/v1/teach", json={"id": long, "query": "a"}),
        http.get(f"/v1/documents/{long}"),
    ):
        problem(answer, 422, "InvalidInput")
    for change in (index.add, index.upsert):
        with pytest.raises(InvalidDocument, match="1,025 characters"):
            change(Document(id=long, text="a"))
    assert len(index) == 1


def test_what_cannot_be_right_is_refused_with_a_sentence(http: httpx2.Client, index: Index) -> None:
    post = http.post
    problem(post("/v1/documents", json={"id": "a"}), 422, "InvalidInput")
    problem(post("/v1/documents", json={"id": "a", "text": "b", "txet": "c"}), 422, "InvalidInput")
    problem(post("/v1/documents", json={"id": "", "text": "b"}), 422, "InvalidInput")
    problem(post("/v1/documents", json={"id": "a", "text": "b", "metadata": {"x": {"y": 1}}}), 422, "InvalidInput")
    problem(post("/v1/documents", json={"id": "a", "text": "b", "queries": ["  "]}), 422, "InvalidInput")
    problem(post("/v1/documents", json=[1]), 422, "InvalidInput")
    problem(post("/v1/documents", content=b"{", headers={"Content-Type": "application/json"}), 400, "InvalidInput")
    problem(post("/v1/documents", content=b"{}", headers={"Content-Type": "text/plain"}), 415, "InvalidInput")
    problem(http.patch("/v1/documents/gone", json={"text": "b"}), 404, "UnknownDocument")
    problem(http.get("/v1/nothing"), 404, "NotFound")
    problem(http.put("/v1/search", json={}), 405, "NotFound")
    assert len(index) == 0


@pytest.mark.parametrize(
    ("sentence", "told"),
    [
        ("shop/store.db is damaged", "the index/store.db is damaged"),
        ("cannot write to shop: disk full (shop)", "cannot write to the index: disk full (the index)"),
        ("no document 'shop' in the index", "no document 'shop' in the index"),
        ("the workshop keeps no such log", "the workshop keeps no such log"),
    ],
)
def test_a_word_that_has_the_folders_name_in_it_is_left_as_it_is(sentence: str, told: str) -> None:
    assert without_folder(sentence, Path("shop")) == told


def test_the_folder_of_the_index_is_told_to_nobody(http: httpx2.Client, folder: object) -> None:
    assert str(folder) not in http.get("/v1/documents/gone").text
    assert str(folder) not in http.get("/v1/info").text


def test_the_same_key_gives_the_first_answer_again(http: httpx2.Client, index: Index) -> None:
    headers = {"Idempotency-Key": "once"}
    first = http.post("/v1/documents", json=BOOTS, headers=headers)
    again = http.post("/v1/documents", json=BOOTS, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.content == first.content
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    problem(http.post("/v1/documents", json={"id": "o", "text": "x"}, headers=headers), 422, "KeyReused")
    problem(http.delete("/v1/documents/boots", headers=headers), 422, "KeyReused")
    assert len(index) == 1
    problem(http.post("/v1/documents", json=BOOTS, headers={"Idempotency-Key": "x" * 300}), 400, "InvalidInput")


def test_a_refusal_does_not_use_up_a_key(http: httpx2.Client) -> None:
    headers = {"Idempotency-Key": "later"}
    problem(http.delete("/v1/documents/boots", headers=headers), 404, "UnknownDocument")
    http.post("/v1/documents", json=BOOTS)
    assert http.delete("/v1/documents/boots", headers=headers).status_code == 200


def test_the_same_key_at_the_same_time_writes_once(http: httpx2.Client, index: Index) -> None:
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(http.post, "/v1/documents", json=BOOTS, headers={"Idempotency-Key": "together"})
            for _ in range(8)
        ]
        answers = {(call.result().status_code, call.result().content) for call in calls}
    assert len(answers) == 1
    assert next(iter(answers))[0] == 201
    assert len(index) == 1


def test_too_many_and_too_long_is_413(start: Start, index: Index) -> None:
    http = start(batch=2, query_characters=20, searches=2, body_bytes=2048)
    three = {"documents": [{"id": str(n), "text": "x"} for n in range(3)]}
    problem(http.post("/v1/documents", json=three), 413, "TooLarge")
    problem(http.post("/v1/documents", json={"id": "a", "text": "x", "queries": ["y" * 21]}), 413, "TooLarge")
    problem(http.post("/v1/search", json={"query": "y" * 21}), 413, "TooLarge")
    problem(http.post("/v1/search", json={"queries": ["a", "b", "c"]}), 413, "TooLarge")
    problem(http.post("/v1/documents", json={"id": "a", "text": "x" * 4000}), 413, "TooLarge")
    line = json.dumps({"id": "a", "text": "x" * 4000}).encode()
    problem(http.post("/v1/documents", content=line, headers=NDJSON), 413, "TooLarge")
    assert len(index) == 0
