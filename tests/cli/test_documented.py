"""Every command has examples, every command and option is in docs/CLI.md, and nothing there is invented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from incdsi.cli import app
from tests.cli.conftest import Run

PAGE = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text(encoding="utf-8")
SHARED, *SECTIONS = re.split(r"^## ", PAGE, flags=re.MULTILINE)
DOCUMENTED = {section.split("\n", 1)[0].strip(): section for section in SECTIONS}
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
EVERYWHERE = {"--index", "-i", "--json", "--quiet", "-q", "--help", "-h"}


def flags(command: Any) -> set[str]:
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return {flag for option in options for flag in (*option.opts, *option.secondary_opts)}


def test_the_page_has_exactly_the_commands_there_are() -> None:
    assert set(DOCUMENTED) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_has_exactly_the_options_there_are(name: str) -> None:
    table = set(re.findall(r"`(--?[a-z][a-z-]*)`", "\n".join(re.findall(r"^\| `-.*$", DOCUMENTED[name], re.M))))
    assert table == flags(COMMANDS[name]) - EVERYWHERE
    assert f"incdsi {name}" in DOCUMENTED[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_json_and_examples(name: str, run: Run) -> None:
    assert "--json" in flags(COMMANDS[name])
    assert ("--index" in flags(COMMANDS[name])) == (name not in ("migrate", "model", "version", "repro"))
    said = run(name, "--help").stdout
    assert "Examples:\n" in said
    assert re.search(rf"incdsi {name}\b", said.split("Examples:")[1])


def test_shared_options_and_codes_are_on_the_page() -> None:
    assert all(f"`{flag}`" in SHARED for flag in EVERYWHERE)
    assert all(code in SHARED for code in ("0 success", "1 refused", "2 wrong usage", "3 `verify`", "130 stopped"))


def test_the_examples_parse() -> None:
    """Options used in the page's examples exist on their commands."""
    for name, rest in re.findall(r"^(?:.*\| )?incdsi ([a-z]+) (.*)$", PAGE, re.M):
        used = set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", f" {rest.split(' | ')[0]}"))
        assert used <= flags(COMMANDS[name]) | {"--help", "-h"}, (name, rest)
