"""The curl lines of docs/HTTP.md run as they stand, in order, against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import httpx2
import pytest

from incdsi.index import Index
from tests.server.conftest import Start
from tests.server.servers import KEY

PAGE = (Path(__file__).parents[2] / "docs" / "HTTP.md").read_text(encoding="utf-8")
(BLOCK,) = re.findall(r"^## With curl\n```\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LINES = BLOCK.replace("\\\n", " ").splitlines()
ADDRESS = "http://127.0.0.1:7799"


@pytest.fixture
def folder_with_documents(tmp_path: Path) -> Path:
    (tmp_path / ".curlrc").write_text("fail-with-body\n")  # an error of the server is an error of the line
    rows = [{"id": f"rope-{number}", "text": f"A rope of {number} metres."} for number in range(3)]
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def run(line: str, folder: Path, http: httpx2.Client) -> str:
    environment = {**os.environ, "CURL_HOME": str(folder), "INCDSI_KEY": KEY}
    command = ["bash", "-euc", line.replace(ADDRESS, str(http.base_url).rstrip("/"))]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (line, done.stdout, done.stderr)
    return done.stdout


def test_the_curl_lines_do_what_they_say(http: httpx2.Client, index: Index, folder_with_documents: Path) -> None:
    said = {line: run(line, folder_with_documents, http) for line in LINES}
    assert all(ADDRESS in line for line in LINES)
    assert [one.id for one in index.documents()] == ["rope-0", "rope-1", "rope-2", "tent-4"]
    searches = [json.loads(answer) for line, answer in said.items() if "/v1/search" in line]
    assert searches[0]["query"] == searches[1]["query"] == "boots for a river"
    assert [len(one["hits"]) for one in searches] == [3, 1]
    (got,) = [
        json.loads(answer)
        for line, answer in said.items()
        if line.endswith("/v1/documents/boots-18") and "-X" not in line
    ]
    assert (got["text"], got["taught"]) == ("Waterproof leather boots.", ["gift for dad"])
    exported = (folder_with_documents / "export.jsonl").read_text().splitlines()
    assert len(exported) == 5


def test_with_a_key_the_line_that_is_named_opens_the_server(start: Start, folder_with_documents: Path) -> None:
    http = start(key=KEY)
    (header,) = re.findall(r"""add `(-H "Authorization: [^`]*)`""", PAGE)
    assert json.loads(run(f"{LINES[-1]} {header}", folder_with_documents, http))["access"] == "write"
    with pytest.raises(AssertionError, match="NotAllowed"):
        run(LINES[-1], folder_with_documents, http)


def test_every_endpoint_is_on_the_page(http: httpx2.Client) -> None:
    described = http.get("/openapi.json").json()["paths"]
    table = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`?]*)[^`]*`", PAGE.split("## Endpoints")[1].split("\n## ")[0])
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} <= set(table)
