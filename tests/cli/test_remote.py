"""The same commands on a folder and on a server's address."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from incdsi.index import Index
from tests.cli.conftest import DOCUMENTS, Run, write
from tests.server.servers import KEY, READ_KEY, make, running

FOLDER_ONLY = [
    ["verify"],
    ["compact"],
    ["resolve"],
    ["tune"],
    ["train"],
    ["backup", "away"],
    ["restore", "away"],
    ["serve"],
]


@pytest.fixture(autouse=True)
def log() -> Iterator[None]:
    """What the server logs in this process is no part of what a command prints."""
    with structlog.testing.capture_logs():
        yield


@pytest.fixture(params=["folder", "server"])
def place(request: pytest.FixtureRequest, run: Run, encoder: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty index as INCDSI_INDEX, in a folder or behind an address."""
    with Index.create(Path("shop"), encoder, tuning=False) as index:
        if request.param == "server":
            with running(index, Path("shop")) as url:
                monkeypatch.setenv("INCDSI_INDEX", url)
                yield url
        else:
            index.close()
            yield "shop"


def ids(run: Run, *arguments: str) -> list[str]:
    return [hit["id"] for hit in json.loads(run("search", *arguments, "--json").stdout)["hits"]]


def test_documents_are_added_found_taught_got_and_deleted(run: Run, place: str) -> None:
    assert run("add", write("docs.jsonl", DOCUMENTS)).stdout.startswith("added 3 documents in ")
    assert ids(run, "how deep is the sea", "-k", "1") == ["sea"]
    assert ids(run, "river", "--where", '{"lang": "de"}', "--mode", "lexical") == ["mountain"]
    assert json.loads(run("teach", "gift for dad", "boots", "--json").stdout)["id"] == "boots"
    assert ids(run, "gift for dad", "-k", "1") == ["boots"]
    got = json.loads(run("get", "boots", "--json").stdout)
    assert (got["id"], got["taught"], got["metadata"]) == ("boots", ["gift for dad"], {"lang": "en", "year": 2001})
    assert run("delete", "boots", "sea").stdout == "deleted 2 documents\n"
    assert json.loads(run("delete", "--where", '{"lang": "de"}', "--resolve", "--json").stdout) == {"deleted": 1}
    assert run("search", "sea").stdout.strip() == "no documents"


def test_a_refused_batch_changes_nothing_and_the_rest_goes_in_on_request(run: Run, place: str) -> None:
    run("add", write("docs.jsonl", DOCUMENTS[:1]))
    assert "'boots' is already in the index" in run("add", write("docs.jsonl", DOCUMENTS), code=1).stderr
    assert exported(run) == ["boots"]
    added = json.loads(run("add", "docs.jsonl", "--skip-bad", "--json").stdout)
    assert (added["added"], len(added["skipped"])) == (2, 1)
    assert "'nobody' in the index" in run("update", write("no.jsonl", [{"id": "nobody", "text": "x"}]), code=1).stderr
    assert "nothing was deleted" in run("delete", "sea", "nobody", code=1).stderr
    assert exported(run) == ["boots", "sea", "mountain"]


def test_documents_are_updated_upserted_and_exported_again(run: Run, place: str) -> None:
    run("add", write("docs.jsonl", DOCUMENTS))
    run("update", write("new.jsonl", [{"id": "sea", "text": "the sea is wide"}]))
    run("upsert", write("more.jsonl", [{"id": "sea", "text": "the sea is flat"}, {"id": "sky", "text": "high"}]))
    run("export", "-o", "out.jsonl")
    found = {row["id"]: row for row in map(json.loads, Path("out.jsonl").read_text().splitlines())}
    assert list(found) == ["boots", "sea", "mountain", "sky"]
    assert (found["sea"]["text"], found["sea"]["queries"]) == ("the sea is flat", ["is the sea deep"])
    run("export", "--format", "trec-run", "--queries", write("q.jsonl", [{"id": "1", "text": "sea"}]), "-o", "run.trec")
    assert Path("run.trec").read_text().startswith("1 Q0 sea 1 ")


def test_a_folder_is_followed(run: Run, place: str) -> None:
    notes = Path("notes")
    notes.mkdir()
    for name in ("a.md", "b.md", "c.md"):
        (notes / name).write_text(f"a note called {name}")
    assert "3 added" in run("sync", notes).stdout
    (notes / "b.md").write_text("another text")
    (notes / "c.md").unlink()
    assert run("sync", notes).stdout.strip() == "0 added, 1 updated, 1 deleted, 1 unchanged"
    assert run("sync", notes).stdout.strip() == "0 added, 0 updated, 0 deleted, 2 unchanged"
    assert exported(run) == ["a.md", "b.md"]


def test_what_an_index_says_of_itself_names_its_place(run: Run, place: str) -> None:
    run("add", write("docs.jsonl", DOCUMENTS))
    found = json.loads(run("info", "--json").stdout)
    assert (found["path"], found["documents"]) == (place, 3)
    assert (found["bytes"] is None) == place.startswith("http")
    assert place in run("info").stdout.replace("\n", "")


def test_a_folder_on_another_machine_is_another_source(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Path("notes")
    notes.mkdir()
    (notes / "a.md").write_text("a note")
    with make(Path("shop")) as index, running(index, Path("shop")) as url:
        run("sync", notes, "--index", url)
        monkeypatch.setattr("socket.gethostname", lambda: "elsewhere")
        (notes / "a.md").rename(notes / "b.md")
        assert "1 added, 0 updated, 0 deleted" in run("sync", notes, "--index", url).stdout


def test_a_key_comes_from_the_environment_and_a_wrong_one_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with make(Path("shop")) as index, running(index, Path("shop"), key=KEY, read_key=READ_KEY) as url:
        docs = write("docs.jsonl", DOCUMENTS)
        for key, sentence in ((None, "a key is required"), ("wrong", "the key is wrong"), (READ_KEY, "read-only")):
            monkeypatch.setenv("INCDSI_KEY", key) if key else monkeypatch.delenv("INCDSI_KEY", raising=False)
            said = run("add", docs, "--index", url, code=1).stderr
            assert sentence in said
            assert len(said.splitlines()) == 1
        monkeypatch.setenv("INCDSI_KEY", KEY)
        run("add", docs, "--index", url)
        assert len(index) == 3


def test_a_server_that_is_away_is_one_sentence_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", None)  # nobody waits for it to come back
    said = run("search", "sea", "--index", "http://127.0.0.1:9", code=1).stderr
    assert said.startswith("no incdsi server answers at http://127.0.0.1:9")
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("arguments", FOLDER_ONLY, ids=lambda arguments: arguments[0])
def test_what_a_server_cannot_do_is_one_sentence(run: Run, arguments: list[str]) -> None:
    for given in (["--index", "http://127.0.0.1:7799"], ["--index=https://shop.example"]):
        said = run(*arguments, *given, code=2).stderr
        assert f"{arguments[0]} needs the folder of the index, not a server's address" in " ".join(said.split())
    assert not Path("http:").exists()


def test_encoder_and_tuning_are_the_servers(run: Run) -> None:
    docs = write("docs.jsonl", DOCUMENTS)
    for option in (["--encoder", "tiny"], ["--no-tuning"]):
        assert "server has its own" in run("add", docs, "--index", "http://127.0.0.1:9", *option, code=1).stderr


def exported(run: Run) -> list[Any]:
    return [json.loads(line)["id"] for line in run("export").stdout.splitlines()]
