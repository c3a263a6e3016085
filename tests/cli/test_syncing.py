"""sync: what it adds, updates, deletes and leaves alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run, write


@pytest.fixture
def notes(run: Run) -> Path:
    folder = Path("notes")
    (folder / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("the river", encoding="utf-8")
    (folder / "deep/b.md").write_text("# Sea\nhow deep", encoding="utf-8")
    return folder


def synced(run: Run, *arguments: object) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run("sync", "notes", "--json", *arguments).stdout)
    return told


def test_new_changed_and_vanished_files_are_followed(run: Run, notes: Path, encoder: str) -> None:
    assert synced(run, "--encoder", encoder)["added"] == ["a.txt", "deep/b.md"]
    assert synced(run)["unchanged"] == 2
    (notes / "a.txt").write_text("the mountain", encoding="utf-8")
    (notes / "c.txt").write_text("hiking boots", encoding="utf-8")
    (notes / "deep/b.md").unlink()
    told = synced(run)
    assert (told["added"], told["updated"], told["deleted"], told["unchanged"]) == (
        ["c.txt"],
        ["a.txt"],
        ["deep/b.md"],
        0,
    )
    documents = [json.loads(line) for line in run("export").stdout.splitlines()]
    assert {document["id"]: document["text"] for document in documents} == {
        "a.txt": "the mountain",
        "c.txt": "hiking boots",
    }
    assert {document["metadata"]["source"] for document in documents} == {notes.resolve().as_posix()}


def test_front_matter_is_metadata_and_its_own_source_is_kept(run: Run, notes: Path, encoder: str) -> None:
    (notes / "c.md").write_text("---\ntitle: Clipped\nsource: https://a.b\ntags: [x]\n---\nText", encoding="utf-8")
    synced(run, "--encoder", encoder)
    found = json.loads(run("get", "c.md", "--json").stdout)
    assert (found["title"], found["text"]) == ("Clipped", "Text")
    mark = notes.resolve().as_posix()
    assert found["metadata"] == {"original_source": "https://a.b", "tags": ["x"], "source": mark}
    assert synced(run)["unchanged"] == 3


def test_a_dry_run_shows_and_does_nothing(run: Run, notes: Path, encoder: str) -> None:
    assert run("sync", "notes", "--dry-run").stdout.splitlines() == [
        "+ a.txt",
        "+ deep/b.md",
        "would be: 2 added, 0 updated, 0 deleted, 0 unchanged",
    ]
    assert not Path("shop").exists()
    run("sync", "notes", "--encoder", encoder)
    before = run("export").stdout
    (notes / "a.txt").write_text("changed", encoding="utf-8")
    (notes / "deep/b.md").unlink()
    assert run("sync", "notes", "--dry-run").stdout.splitlines()[:2] == ["- deep/b.md", "~ a.txt"]
    assert run("export").stdout == before


def test_other_documents_are_left_alone(run: Run, notes: Path, shop: Path) -> None:
    run("sync", "notes")
    (notes / "deep/b.md").unlink()
    run("sync", "notes")
    ids = {json.loads(line)["id"] for line in run("export").stdout.splitlines()}
    assert ids == {"boots", "sea", "mountain", "a.txt"}


def test_an_id_from_elsewhere_is_refused_and_a_prefix_keeps_both(run: Run, notes: Path, shop: Path) -> None:
    run("add", write("mine.jsonl", [{"id": "a.txt", "text": "mine"}]))
    said = run("sync", "notes", code=1).stderr
    assert "1 document with the same id came from elsewhere than notes, 'a.txt' first" in said
    assert synced(run, "--prefix", "notes/")["added"] == ["notes/a.txt", "notes/deep/b.md"]
    assert synced(run, "--prefix", "notes/")["unchanged"] == 2
    assert json.loads(run("get", "a.txt", "--json").stdout)["text"] == "mine"


def test_a_bad_file_is_refused_and_never_counts_as_vanished(run: Run, notes: Path, encoder: str) -> None:
    run("sync", "notes", "--encoder", encoder)
    (notes / "a.txt").write_bytes(b"\xff")
    assert "a.txt: not UTF-8" in run("sync", "notes", code=1).stderr
    told = synced(run, "--skip-bad")
    assert (told["deleted"], told["unchanged"], len(told["skipped"])) == ([], 1, 1)
    assert json.loads(run("get", "a.txt", "--json").stdout)["text"] == "the river"


def test_a_folder_without_text_empties_nothing(run: Run, notes: Path, shop: Path) -> None:
    run("sync", "notes")
    (notes / "a.txt").unlink()
    (notes / "deep/b.md").unlink()
    assert "no documents found" in run("sync", "notes", code=1).stderr
    assert "docs.jsonl is not a folder" in run("sync", "docs.jsonl", code=1).stderr
    assert len(run("export").stdout.splitlines()) == 5
