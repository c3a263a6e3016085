"""Front matter becomes title and metadata and is not in the text; what is none stays text."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.documents import Document
from incdsi.errors import InvalidFile
from incdsi.readers import read_documents
from incdsi.readers.front_matter import LONGEST, split

Read = Callable[[str], Document]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    def document(text: str, name: str = "note.md") -> Document:
        (tmp_path / name).write_bytes(text.encode())
        ((found, queries),) = read_documents(tmp_path / name)
        assert queries == []
        return found

    return document


def test_yaml_becomes_title_and_metadata_and_is_not_in_the_text(read: Read) -> None:
    found = read(
        "---\ntitle: Boots - a guide\ndate: 2024-05-01\n"
        "tags: [hiking, 'river', 7]\n"
        "draft: false  # not yet\n"
        "weight: 1.50\n"
        "code: 007\n"
        'year: "2024"\n'
        "answer: yes\n"
        "summary: >\n  two\n  lines\n"
        "aliases:\n  - old\n  - older\n"
        "author:\n  name: Ann\n  links: {web: a.b}\n"
        "parts:\n  - name: x\n"
        "empty:\n"
        "nothing: ~\n"
        "---\n\n# Heading\nText.\n"
    )
    assert (found.title, found.text) == ("Boots - a guide", "# Heading\nText.\n")
    assert found.metadata == {
        "date": "2024-05-01",
        "tags": ("hiking", "river", 7),
        "draft": False,
        "weight": 1.5,
        "code": "007",
        "year": "2024",
        "answer": "yes",
        "summary": "two lines\n",
        "aliases": ("old", "older"),
        "author.name": "Ann",
        "author.links.web": "a.b",
        "parts": '[{"name": "x"}]',
    }


def test_toml_too(read: Read) -> None:
    toml = 'title = "Boots"\ndate = 2024-05-01T12:30:00Z\ndays = [2024-05-01]\nat = 12:30:00\ntags = ["a"]'
    toml += '\n[author]\nname = "Ann"'
    found = read(f"+++\r\n{toml}\r\n+++\r\n\r\nText.")
    assert (found.title, found.text) == ("Boots", "Text.")
    assert found.metadata == {
        "date": "2024-05-01T12:30:00+00:00",
        "days": ("2024-05-01",),
        "at": "12:30:00",
        "tags": ("a",),
        "author.name": "Ann",
    }


@pytest.mark.parametrize(
    ("text", "title", "body"),
    [
        ("---\nlang: en\n---\n# Heading\nText", "Heading", "# Heading\nText"),
        ("---\nlang: en\n...\nText", "note", "Text"),
        ("---\r\ntitle: 1.10\r\n---\r\nText", "1.10", "Text"),
        ("\ufeff--- \ntitle: x\n---", "x", ""),
        ("---\n---\nText", "note", "Text"),
        ("---\n# only a comment\n---\nText", "note", "Text"),
    ],
)
def test_a_title_is_taken_as_it_is_written_or_from_the_text(read: Read, text: str, title: str, body: str) -> None:
    found = read(text)
    assert (found.title, found.text) == (title, body)


@pytest.mark.parametrize(
    "text",
    [
        "---\nA paragraph between two rules.\n---\nText",
        "---\n- a list\n---\n",
        "---\nNever closed: true\n",
        "Text\n---\ntitle: no\n---\n",
        "--- x\ntitle: no\n---\n",
        "---\n*Emphasis* [and: links](x): {\n---\n",
        "---\n*alias\n---\n",
        "---\nA sentence that goes on for a while: and then ends.\n---\n",
        "---\nfar: away\n" + "x\n" * LONGEST + "---\n",
    ],
)
def test_what_is_no_front_matter_stays_text(read: Read, text: str) -> None:
    found = read(text)
    assert (found.text, found.metadata) == (text, {})


def test_a_text_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("---\ntitle: x\n---\n")
    ((found, _),) = read_documents(tmp_path / "a.txt")
    assert (found.title, found.text) == ("a", "---\ntitle: x\n---\n")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("---\ntitle: a: b\n---\n", "not valid YAML in line 2: mapping values are not allowed here; quote values"),
        ("---\na: [\n---\n", "not valid YAML in line"),
        ("---\na: &x [1]\nb: *x\n---\n", r"YAML aliases \(\*\) is not read; write the values out"),
        ("---\na: 1\na: 2\n---\n", "front matter has 'a' twice; keep one"),
        ("---\na: 1\n? [a]\n: 1\n---\n", "a list or mapping as its name"),
        ("---\na: " + "[" * 30_000 + "\n---\n", "nested too deeply"),
        ("---\na: " + "{b: " * 5000 + "\n---\n", "nested too deeply"),
        ("+++\na = \n+++\n", "not valid TOML"),
        ("+++\na = inf\n+++\n", "metadata 'a': expected a finite number"),
    ],
)
def test_front_matter_that_cannot_be_read_is_one_sentence(read: Read, text: str, says: str) -> None:
    with pytest.raises(InvalidFile, match=says) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    assert str(caught.value.path).endswith("note.md")


PIECES = st.sampled_from(["---\n", "+++\n", "a: ", "b = ", "&a", "*a", ": ", "- ", "\n", *"1x[]{}'|\" "])


@given(pieces=st.lists(PIECES, max_size=30))
def test_any_text_is_split_or_refused_and_never_loses_a_line_after_it(pieces: list[str]) -> None:
    text = "".join(pieces)
    with contextlib.suppress(ValueError):
        _, metadata, body = split(text)
        assert text.endswith(body)
        assert body == text or any(text.startswith(fence) for fence in ("---", "+++"))
        Document(id="a", text=body, metadata=metadata)


def test_a_folder_tells_of_the_file_and_takes_the_rest(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_text("---\na: b: c\n---\n")
    (tmp_path / "good.md").write_text("---\ntags: [x]\n---\nText")
    refused: list[Any] = []
    ((found, _),) = read_documents(tmp_path, on_error=refused.append)
    assert (found.metadata, len(refused)) == ({"tags": ("x",)}, 1)
