"""A file is added as the command line would add it, all of it or nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from incdsi.index import Index
from tests.server.conftest import Start
from tests.server.servers import KEY, READ_KEY

TABLE = "id,title,text,price\nboots,Boots,Waterproof boots.,19.90\ntent,Tent,A tent for two.,99.00\n"


def send(http: httpx2.Client, name: str, content: str | bytes, **given: Any) -> httpx2.Response:
    return http.post("/v1/files", params={"name": name, **given}, content=content)


@pytest.mark.parametrize(
    ("name", "content", "ids"),
    [
        ("docs.csv", TABLE, ["boots", "tent"]),
        ("DOCS.TSV", TABLE.replace(",", "\t"), ["boots", "tent"]),
        ("docs.jsonl", '{"id": "a", "text": "one", "queries": ["q"]}\n{"id": "b", "text": "two"}\n', ["a", "b"]),
        ("docs.json", '[{"id": "a", "text": "one"}]', ["a"]),
        ("docs.csv.gz", gzip.compress(TABLE.encode(), mtime=0), ["boots", "tent"]),
        ("notes.md", "---\ntags: [new]\n---\n# Boots\nDry feet.\n", ["notes.md"]),
        ("übung 1.txt", "Dry feet.", ["übung 1.txt"]),
    ],
)
def test_every_kind_of_file_is_added_with_what_is_in_it(
    http: httpx2.Client, index: Index, name: str, content: str | bytes, ids: list[str]
) -> None:
    answer = send(http, name, content)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["name"], told["documents"], told["created"], told["ids"]) == (name, len(ids), len(ids), ids)
    assert [document.id for document in index.documents()] == ids
    assert answer.headers["etag"] == f'"{index.version}"'
    assert http.get("/v1/figures").json()["additions"] == len(ids)


def test_metadata_titles_and_queries_come_along(http: httpx2.Client, index: Index) -> None:
    send(http, "docs.csv", TABLE).raise_for_status()
    assert (index.get("tent").title, index.get("tent").metadata) == ("Tent", {"price": 99.0})
    send(http, "q.jsonl", '{"id": "a", "text": "one", "queries": ["wet"], "taught": ["dry"]}').raise_for_status()
    assert index.queries("a") == ["wet", "dry"]


@pytest.mark.parametrize(
    ("name", "content", "status", "sentence"),
    [
        ("docs.csv", TABLE + "tent,Again,twice,1\n", 409, "docs.csv:4: duplicate id 'tent', already used at docs.csv"),
        ("docs.csv", "id,text\na\n", 422, "docs.csv:2: "),
        ("docs.csv", "sku,name\na,b\n", 422, "docs.csv: no column 'id' or 'text'; the columns are sku, name; say "
         "which to use with id_field and text_field"),
        ("docs.jsonl", '{"id": "a", "text": "one"}\n{"id": \n', 422, "docs.jsonl:2: not valid JSON"),
        ("docs.csv", b"id,text\na,\xff\n", 422, "docs.csv:2: not UTF-8: byte 0xff"),
        ("docs.csv", "", 422, "docs.csv: no documents found"),
        ("docs.pdf", "%PDF", 422, "docs.pdf: unknown file type; use .jsonl, .csv, "),
        ("docs.parquet", "PAR1", 422, "docs.parquet: "),
        ("docs.csv.gz", gzip.compress(b"id,text\na,b\n", mtime=0)[:-9], 422, "docs.csv.gz: damaged gzip file"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_one_sentence_and_nothing_is_added(
    http: httpx2.Client, index: Index, name: str, content: str | bytes, status: int, sentence: str
) -> None:
    answer = send(http, name, content)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"].startswith(sentence)
    assert "/tmp" not in answer.text
    assert "--" not in answer.json()["detail"]
    assert index.version == 0


@pytest.mark.parametrize(
    "name", ["", "../docs.csv", "/etc/docs.csv", "a/b.csv", "..", ".", "a\\b.csv", "a\x00.csv", "ä" * 200]
)
def test_a_name_is_that_of_a_file(http: httpx2.Client, index: Index, name: str) -> None:
    assert send(http, name, TABLE).status_code == 422
    assert index.version == 0


def test_a_document_that_is_there_is_refused_with_all_others_or_replaced(http: httpx2.Client, index: Index) -> None:
    index.add({"id": "tent", "text": "old"}, ["sleep outside"])
    refused = send(http, "docs.csv", TABLE)
    assert (refused.status_code, refused.json()["error"]) == (409, "DuplicateDocument")
    assert len(index) == 1
    told = send(http, "docs.csv", TABLE, replace=True).json()
    assert (told["documents"], told["created"]) == (2, 1)
    assert (index.get("tent").text, index.queries("tent")) == ("A tent for two.", ["sleep outside"])


def test_columns_can_be_named(http: httpx2.Client, index: Index) -> None:
    table = "sku,name,what,more\n7,Boots,Waterproof.,Leather.\n"
    given = {"id_field": "sku", "title_field": "name", "text_field": ["what", "more"]}
    assert send(http, "docs.csv", table, **given).status_code == 201
    assert (index.get("7").title, index.get("7").text) == ("Boots", "Waterproof.\nLeather.")
    assert send(http, "docs.csv", table, id_feld="sku").status_code == 422


def test_progress_is_told_line_by_line_and_ends_with_the_result(http: httpx2.Client, index: Index) -> None:
    rows = "".join(json.dumps({"id": f"d{n}", "text": f"document {n}"}) + "\n" for n in range(100))
    answer = send(http, "docs.jsonl", rows, progress=True)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/x-ndjson")
    *steps, last = map(json.loads, answer.text.splitlines())
    assert [(one["stage"], one["done"], one["of"]) for one in steps] == [
        ("adding", done, 100) for done in (32, 64, 96, 100, 100)
    ]
    assert (last["documents"], last["version"], len(index)) == (100, index.version, 100)
    *_, refused = map(json.loads, send(http, "docs.jsonl", rows, progress=True).text.splitlines())
    assert (refused["status"], refused["error"]) == (409, "DuplicateDocument")
    assert len(index) == 100


def test_sizes_are_limited_packed_and_unpacked(start: Start, index: Index, tmp_path: Path) -> None:
    http = start(file_bytes=2000)
    rows = "".join(json.dumps({"id": str(n), "text": "a" * 200}) + "\n" for n in range(20))
    for name, content in (("docs.jsonl", rows.encode()), ("docs.jsonl.gz", gzip.compress(rows.encode()))):
        answer = send(http, name, content)
        assert (answer.status_code, answer.json()["error"]) == (413, "TooLarge")
    assert index.version == 0


def test_a_read_key_may_add_no_file(start: Start) -> None:
    http = start(key=KEY, read_key=READ_KEY, headers={"X-API-Key": READ_KEY})
    assert send(http, "docs.csv", TABLE).status_code == 403


def test_a_key_of_a_retry_is_refused(http: httpx2.Client) -> None:
    sent = {"params": {"name": "docs.csv"}, "content": TABLE}
    assert http.post("/v1/files", headers={"Idempotency-Key": "k"}, **sent).status_code == 400
    assert http.post("/v1/files", headers={"If-Match": '"0"'}, **sent).status_code == 400
