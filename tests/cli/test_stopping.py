"""Ctrl-C: what the last sentence says is what is there."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from incdsi.index import Index
from incdsi.index.writing import Writer
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
    """`ctrl_c(Index, "update", 2)`: the second call of that function meets a Ctrl-C as it begins."""

    def at(owner: Any, name: str, call: int = 1) -> None:
        calls, function = iter(range(1, 1 << 30)), getattr(owner, name)

        def stopped(*arguments: Any, **options: Any) -> Any:
            if next(calls) == call:
                raise KeyboardInterrupt
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, stopped)

    return at


def ids(run: Run) -> list[str]:
    return [json.loads(line)["id"] for line in run("export").stdout.splitlines()]


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
    monkeypatch.setattr("incdsi.index.index.ENOUGH", 2)
    ctrl_c(Index, "_tune")
    said = run("add", write("docs.jsonl", MANY), "--encoder", encoder, code=130).stderr
    assert said.startswith("stopped; 12 documents were added and are kept; ")
    assert len(ids(run)) == 12
