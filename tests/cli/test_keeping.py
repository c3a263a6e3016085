"""verify, compact, backup, restore."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Run, write


def test_a_sound_index_is_verified(run: Run, shop: Path) -> None:
    assert run("verify").stdout.startswith("sound")
    assert json.loads(run("verify", "--json").stdout) == {"sound": True, "problems": []}


def test_a_damaged_store_is_code_three(run: Run, shop: Path) -> None:
    run("compact")
    store = shop / "store.db"
    data = bytearray(store.read_bytes())
    data[len(data) // 2 :] = bytes(len(data) - len(data) // 2)
    store.write_bytes(data)
    told = json.loads(run("verify", "--json", code=3).stdout)
    assert not told["sound"]
    assert told["problems"]
    assert run("verify", code=3).stdout.strip()


def test_a_damaged_model_is_code_three(run: Run, shop: Path) -> None:
    (graph,) = shop.glob("model/*/model.onnx")
    graph.write_bytes(graph.read_bytes()[:-1])
    assert "expected sha256" in run("verify", code=3).stdout
    assert "expected checksum" in run("search", "sea", code=1).stderr


def test_no_index_is_refused_not_a_problem(run: Run) -> None:
    assert "no index in shop" in run("verify", code=1).stderr


def test_deleted_text_is_gone_after_compact(run: Run, shop: Path) -> None:
    run("add", write("secret.jsonl", [{"id": "secret", "text": "xylophonist conspiracy"}]))
    run("delete", "secret")
    assert "compacted from " in run("compact").stdout
    assert not [path for path in shop.rglob("*") if path.is_file() and b"xylophonist" in path.read_bytes()]
    assert json.loads(run("compact", "--json").stdout)["bytes"] > 0


def test_a_backup_restores_to_the_same_index(run: Run, shop: Path) -> None:
    before = run("search", "deep", "--mode", "learned").stdout
    run("backup", "monday")
    assert "monday already holds an index" in run("backup", "monday", code=1).stderr
    run("delete", "sea")
    assert json.loads(run("restore", "monday", "--index", "again", "--json").stdout) == {
        "index": "again",
        "documents": 3,
    }
    assert run("search", "deep", "--mode", "learned", "--index", "again").stdout == before
    assert "shop already holds an index" in run("restore", "monday", code=1).stderr
    assert "no backup in nowhere" in run("restore", "nowhere", "--index", "third", code=1).stderr
    assert json.loads(run("backup", "tuesday", "--json").stdout)["backup"] == "tuesday"


def test_a_backup_with_a_damaged_model_is_refused_and_nothing_appears(run: Run, shop: Path) -> None:
    run("backup", "monday")
    (graph,) = Path("monday").glob("model/*/model.onnx")
    graph.write_bytes(graph.read_bytes()[:-1])
    said = run("restore", "monday", "--index", "again", code=1).stderr
    assert "the backup in monday is damaged" in said
    assert "expected sha256" in said
    assert not Path("again").exists()
