"""What other people wrote never steers the terminal: not in an id, a name, a title, a text, nor in an error."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from incdsi.cli.output import printable
from tests.cli.conftest import Run, write

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\r\u202e"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (EVIL, SHOWN),
        ("a\r\nb\tc\n", "a\nb\tc\n"),
        ("\0\x08\x7f\u2028\u2069\udcff", r"\x00\x08\x7f\u2028\u2069\udcff"),
        ("naïve 日本\u3000語 👩\u200d🚀 می\u200cخواهم \u00a0", "naïve 日本\u3000語 👩\u200d🚀 می\u200cخواهم \u00a0"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_an_escape_and_nothing_else_changes(text: str, shown: str) -> None:
    assert printable(text) == shown


def steers(text: str) -> bool:
    return any(letter in text for letter in "\x1b\x07\x9b\r\u202e")


def test_no_command_lets_a_document_steer(run: Run, encoder: str) -> None:
    evil = {"id": f"id{EVIL}", "title": f"sea {EVIL}", "text": f"deep {EVIL}", f"n{EVIL}": EVIL, "queries": [EVIL]}
    twin = {**evil, "id": f"twin{EVIL}"}
    said = [
        run("add", write("docs.jsonl", [evil, twin, evil]), "--skip-bad", "--encoder", encoder),
        run("search", "sea"),
        run("search", "-", stdin=f"sea{EVIL}\n"),
        run("get", evil["id"]),
        run("teach", f"new {EVIL}", evil["id"]),
        run("get", f"ghost{EVIL}", code=1),
        run("delete", f"ghost{EVIL}", code=1),
        run("add", f"no{EVIL}.jsonl", code=1),
        run("add", "docs.jsonl", code=1),
        run("info", "--index", f"none{EVIL}", code=1),
        run("search", "a", "too", f"many{EVIL}", code=2),
        run("search", "a", f"--no{EVIL}", code=2),
        run(f"nothing{EVIL}", code=2),
        run("search", "a", "--where", f"{{{EVIL}", code=2),
    ]
    assert [result.output for result in said if steers(result.output)] == []
    assert r"\x1b]0;owned" in said[1].output
    assert json.loads(run("get", evil["id"], "--json").stdout)["text"] == evil["text"]


def test_no_file_name_steers(run: Run, encoder: str) -> None:
    folder = Path("notes")
    folder.mkdir()
    (folder / f"a{EVIL}.md").write_text("the sea")
    (folder / f"b{EVIL}.md").write_text("")
    for arguments, code in ((["--dry-run"], 1), (["--dry-run", "--skip-bad"], 0)):
        result = run("sync", "notes", "--encoder", encoder, *arguments, code=code)
        assert not steers(result.output)
        assert r"\x1b]0;owned" in result.output


@pytest.mark.parametrize("terminal", [True, False])
def test_json_is_exact_but_on_a_terminal(terminal: bool) -> None:
    """Raw C1 controls are legal JSON; a program gets them, a screen does not."""
    command = [sys.executable, "-c", "from incdsi.cli.output import emit; emit({'id': 'a\\x9bb'})"]
    ours, theirs = pty.openpty() if terminal else os.pipe()
    try:
        subprocess.run(command, stdout=theirs, check=True)
        found = os.read(ours, 1000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert found.strip() == (r'{"id": "a\x9bb"}' if terminal else '{"id": "a\x9bb"}')
