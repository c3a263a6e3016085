"""squad_plus is made by rule from the public files: paragraphs, questions, parts by hash."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from incdsi.errors import InvalidFile, InvalidInput
from incdsi_lab.__main__ import main
from incdsi_lab.data import read_jsonl, squad_plus, write_jsonl
from incdsi_lab.data.squad_plus import build, parts_of
from incdsi_lab.data.squad_plus import squad_plus as made


def article(title: str, **paragraphs: int) -> dict[str, Any]:
    """Paragraphs by their text, with so many questions each."""
    return {
        "title": title,
        "paragraphs": [
            {
                "context": text,
                "qas": [{"id": f"{title}{text}{n}", "question": f" What  is {text} {n}? "} for n in range(k)],
            }
            for text, k in paragraphs.items()
        ],
    }


FILES = {
    "squad": {"data": [article("Super_Bowl", one=5, two=1)]},
    "nyt": {"data": [article("https://www.nytimes.com/2015/01/04/a-fine-day.html", news=2)]},
    "reddit": {"data": [article("Comments", chat=1), article("Comments_again", other=1, chat=3)]},
}


def test_paragraphs_are_documents_and_one_that_comes_again_adds_its_questions() -> None:
    collection = made(FILES)
    found = [(document.id, document.title, document.text) for document in collection.documents]
    assert found == [
        ("squad-00000", "Super Bowl", "one"),
        ("squad-00001", "Super Bowl", "two"),
        ("nyt-00000", "a fine day", "news"),
        ("reddit-00000", "", "chat"),
        ("reddit-00001", "", "other"),
    ]
    assert [query.document_id for query in collection.queries][-5:] == [
        "reddit-00000",
        "reddit-00001",
        *["reddit-00000"] * 3,
    ]
    assert collection.queries[0].text == "What is one 0?"


def test_each_document_has_one_query_to_test_with_and_one_to_validate_with_of_four() -> None:
    for count, expected in (
        (1, ["test"]),
        (3, ["test", "train", "train"]),
        (5, ["test", "train", "train", "train", "val"]),
    ):
        parts = parts_of([(f"squad:{number}", "d") for number in range(count)])
        assert sorted(parts.values()) == expected
    ordered = {"d": "train", "c": "train", "a": "val", "b": "test"}  # by sha1
    assert parts_of([(id, "one") for id in "abcd"]) == ordered


def test_what_is_written_is_read_as_the_same_collection(tmp_path: Path) -> None:
    collection = made(FILES)
    write_jsonl(collection, tmp_path / "squad_plus")
    assert read_jsonl(tmp_path / "squad_plus").digest == collection.digest
    with pytest.raises(InvalidInput, match="is not an empty folder"):
        build(tmp_path / "squad_plus")


def test_the_command_refuses_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_jsonl(made(FILES), tmp_path / "squad_plus")
    monkeypatch.setattr(sys, "argv", ["incdsi-lab", "data", "squad", "--data", str(tmp_path)])
    with pytest.raises(SystemExit, match="is not an empty folder"):
        main()


def test_other_files_than_the_study_s_are_refused_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(squad_plus, "fetched", lambda scratch: FILES)
    with pytest.raises(InvalidFile, match="does not hold the files the study was made from"):
        build(tmp_path / "squad_plus")
    assert not list(tmp_path.iterdir())
