"""Ctrl-C: what the last sentence says is what is there."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from incdsi.cli import changing, looking
from incdsi.engine.local import LocalEngine
from incdsi.index import tuning, writer
from incdsi.index.writer import Writer
from incdsi.store import Store, upkeep
from tests.cli.conftest import Run, write

CtrlC = Callable[..., None]
MANY = [
    {
        "id": f"d{n}",
        "text": f"the river {n} flows",
        "queries": [f"{word} {n} river" for word in ("who", "sea", "a", "b")],
    }
    for n in range(12)
]


@pytest.fixture
def ctrl_c(monkeypatch: pytest.MonkeyPatch) -> CtrlC:
    """`ctrl_c(Index, "update", 2)`: the second call of that function from now on meets a Ctrl-C as it begins."""

    def at(owner: Any, name: str, call: int = 1) -> None:
        calls, function = itertools.count(1), getattr(owner, name)

        def stopped(*arguments: Any, **options: Any) -> Any:
            if next(calls) == call:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, stopped)

    return at


def ids(run: Run) -> list[str]:
    return [json.loads(line)["id"] for line in run("export").stdout.splitlines()]


def test_add_stopped_between_two_batches_says_how_many_are_in(run: Run, encoder: str, ctrl_c: CtrlC) -> None:
    ctrl_c(changing.Change, "_accepted", 3)
    said = run("add", write("docs.jsonl", MANY), "--encoder", encoder, "--batch", 4, code=130).stderr
    assert said.startswith("stopped; 8 documents were added and are kept; ")
    assert len(ids(run)) == 8
    told = json.loads(run("add", "docs.jsonl", "--skip-bad", "--json").stdout)
    assert told["added"] == 4


def test_add_stopped_before_anything_says_so(run: Run, encoder: str, ctrl_c: CtrlC) -> None:
    ctrl_c(changing.Change, "_accepted")
    assert (
        run("add", write("docs.jsonl", MANY), "--encoder", encoder, code=130).stderr == "stopped; nothing was written\n"
    )
    assert ids(run) == []


@pytest.mark.parametrize(("verb", "done"), [("update", "updated"), ("upsert", "upserted")])
def test_update_stopped_in_the_middle_says_how_many_are_in(
    run: Run, encoder: str, ctrl_c: CtrlC, verb: str, done: str
) -> None:
    run("add", write("docs.jsonl", MANY), "--encoder", encoder)
    ctrl_c(Writer, "update", 4)
    said = run(verb, write("new.jsonl", [{**row, "title": "new"} for row in MANY]), code=130).stderr
    assert said.startswith(f"stopped; at least 3 documents were {done} and are kept; ")
    titles = [json.loads(line)["title"] for line in run("export").stdout.splitlines()]
    assert titles.count("new") == 3


def test_sync_stopped_in_the_middle_keeps_what_it_says_and_goes_on(
    run: Run, encoder: str, ctrl_c: CtrlC, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("notes").mkdir()
    for number in range(6):
        Path("notes", f"{number}.md").write_text(f"# Note {number}\nthe river {number} flows", encoding="utf-8")
    monkeypatch.setattr(writer, "BATCH", 2)
    ctrl_c(Writer, "_add", 3)
    said = run("sync", "notes", "--encoder", encoder, code=130).stderr
    assert "stopped; at least 4 of 6 changes are kept; run the same command for the rest" in said
    assert len(ids(run)) == 4
    assert "2 added, 0 updated, 0 deleted, 4 unchanged" in run("sync", "notes").stdout


def test_tune_stopped_before_and_after_its_commit_says_which(run: Run, encoder: str, ctrl_c: CtrlC) -> None:
    run("add", write("docs.jsonl", MANY), "--encoder", encoder)
    ctrl_c(tuning, "retuned")
    assert run("tune", code=130).stderr == "stopped; the index is as it was\n"
    assert json.loads(run("info", "--json").stdout)["last_tuning"] is None
    ctrl_c(LocalEngine, "_refresh_base")
    assert run("tune", code=130).stderr == "stopped; the index is tuned\n"
    assert json.loads(run("info", "--json").stdout)["last_tuning"] is not None


def test_attaching_stopped_in_the_middle_says_how_many_are_in(
    run: Run, shop: Path, ctrl_c: CtrlC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.index.writer.BATCH", 1)
    log = write("log.jsonl", [{"text": f"asked for {id}", "document_id": id} for id in ("boots", "sea", "mountain")])
    ctrl_c(Writer, "_attach", 3)
    said = run("train", "--queries", log, code=130).stderr
    assert said == "stopped; queries of at least 2 documents are stored; run the same command to go on\n"
    stored = [json.loads(line)["queries"] for line in run("export").stdout.splitlines()]
    assert sum(any("asked for" in str(query) for query in queries) for queries in stored) == 2


def test_backup_and_restore_stopped_leave_nothing(run: Run, shop: Path, ctrl_c: CtrlC) -> None:
    run("backup", "whole")
    before = sorted(Path().iterdir())
    ctrl_c(upkeep, "_copy_pages")
    assert run("backup", "half", code=130).stderr == "stopped; no backup was made\n"
    ctrl_c(upkeep, "_renew")
    assert run("restore", "whole", "--index", "again", code=130).stderr == "stopped; nothing was restored\n"
    assert sorted(Path().iterdir()) == before


def test_export_stopped_says_whether_there_is_a_file(run: Run, shop: Path, ctrl_c: CtrlC) -> None:
    ctrl_c(looking, "document_json", 2)
    stopped = run("export", code=130)
    assert len(stopped.stdout.splitlines()) == 1
    assert stopped.stderr == "stopped; the output is not whole\n"
    ctrl_c(looking, "document_json", 2)
    assert run("export", "-o", "out.jsonl", code=130).stderr == "stopped; out.jsonl was not written\n"
    assert not list(Path().glob("*out.jsonl*"))


def test_compact_stopped_does_not_promise_that_all_is_gone(run: Run, shop: Path, ctrl_c: CtrlC) -> None:
    run("delete", "sea")
    ctrl_c(Store, "compact")
    said = run("compact", code=130).stderr
    assert said == "stopped; bytes of deleted documents may be left; run it again\n"
    assert run("verify").exit_code == 0
    run("compact")
    assert b"how deep is the sea" not in b"".join(file.read_bytes() for file in shop.rglob("*") if file.is_file())


def test_delete_stopped_as_it_resolves_says_what_went_and_resolve_goes_on(
    run: Run, encoder: str, ctrl_c: CtrlC
) -> None:
    twins = [{"id": f"t{n}", "text": "the sea is deep", "queries": ["who won the sea"]} for n in range(5)]
    run("add", write("docs.jsonl", twins), "--encoder", encoder)
    ctrl_c(Writer, "_replace", 2)
    said = run("delete", "t0", "--resolve", code=130).stderr
    left = json.loads(run("info", "--json").stdout)["unresolved"]
    assert said == f"stopped; 1 deleted, {left} left to place anew: `resolve` goes on\n"
    assert left > 0
    assert f"{left} placed beside documents that are deleted by now" in run("info").stdout
    assert sorted(ids(run)) == ["t1", "t2", "t3", "t4"]
    assert json.loads(run("resolve", "--json").stdout) == {"resolved": left}
    assert run("resolve").stdout == "placed 0 documents anew\n"


def test_add_stopped_as_the_index_tunes_itself_has_added_all(
    run: Run, encoder: str, ctrl_c: CtrlC, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.index.tuning.ENOUGH", 2)
    ctrl_c(tuning.Tuner, "tune")
    said = run("add", write("docs.jsonl", MANY), "--encoder", encoder, code=130).stderr
    assert said.startswith("stopped; 12 documents were added and are kept; ")
    assert len(ids(run)) == 12
