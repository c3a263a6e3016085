"""Documents as people have them: docs/DOCUMENTS.md's folder, manual and table, a command each; here in small."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run

PAGE = (Path(__file__).parents[2] / "docs" / "DOCUMENTS.md").read_text(encoding="utf-8")
SMALL = "PRODUCTS, MANUAL, TOPICS = 60, 6_000, 3"


@pytest.fixture
def mixed(run: Run, encoder: str) -> Run:
    """The page's files in small, each added by the page's own command."""
    block = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    made = re.sub(r"^PRODUCTS, MANUAL, TOPICS = .*$", SMALL, block, flags=re.MULTILINE)
    assert SMALL in made
    exec(compile(made, "DOCUMENTS.md", "exec"), {})
    commands = re.findall(r"^incdsi ((?:sync|add) .*)$", PAGE, re.M)
    assert [command.split()[1] for command in commands] == ["python", "manual.md", "products.csv"]
    for number, command in enumerate(commands):
        run(*command.split(), *(["--encoder", encoder] if number == 0 else []))
    return run


def hits(run: Run, query: str, *options: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("search", query, *options, "--index", "library", "--json").stdout)[
        "hits"
    ]
    return found


def test_folder_manual_and_table_go_in_with_a_command_each(mixed: Run) -> None:
    library = ("--index", "library")
    assert json.loads(mixed("info", *library, "--json").stdout)["documents"] == 60 + 1 + 3
    (manual,) = (hit for hit in hits(mixed, "function", "--mode", "lexical", "-k", 99) if hit["id"] == "manual.md")
    (passage,) = manual["passages"]
    text = Path("manual.md").read_text(encoding="utf-8")
    assert passage["text"] == text[passage["start"] : passage["end"]]
    assert passage["headings"][-1] in text
    assert any(passage["snippet"]["text"][a:b].lower().startswith("function") for a, b in passage["snippet"]["marks"])
    assert "text" not in manual
    assert len(json.dumps(manual)) < 4000 < len(text)
    where = {"price": {"lt": 300}, "tags": {"contains": "hiking"}, "in_stock": True, "added": {"gte": "2024-03-01"}}
    found = hits(mixed, "waterproof boots", "--where", json.dumps(where), "-k", 99)
    assert found
    for hit in found:
        said = hit["metadata"]
        assert said["price"] < 300
        assert "hiking" in said["tags"]
        assert (said["in_stock"], said["added"] >= "2024-03-01") == (True, True)


def test_a_table_of_hits_shows_headings_and_snippets_and_no_text_leaves_them_out(mixed: Run) -> None:
    (manual,) = (hit for hit in hits(mixed, "function", "--mode", "lexical", "-k", 99) if hit["id"] == "manual.md")
    shown = mixed("search", "function", "--mode", "lexical", "-k", 99, "--index", "library").stdout
    bare = mixed("search", "function", "--mode", "lexical", "-k", 99, "--index", "library", "--no-text").stdout
    first = manual["passages"][0]["headings"][0]
    assert first in shown
    assert first in bare
    assert len(bare) < len(shown) < 99 * 700
    assert "text" not in hits(mixed, "function", "--no-text")[0]
    assert all("text" not in one for hit in hits(mixed, "function", "--no-text", "-k", 99) for one in hit["passages"])
    several = hits(mixed, "function", "--passages", 3, "-k", 99)
    assert max(len(hit["passages"]) for hit in several) == 3
