"""What README.md shows works as it stands, and its links lead somewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import httpx2
import pytest
import typer

from incdsi.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")])
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_to_a_file_leads_to_one(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    local = [link for link in links if not link.startswith(("http://", "https://"))]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_make_has_the_targets_that_are_named():
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|^)make ([a-z0-9-]+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert named
    assert named <= targets


def is_run(block):
    """Installing is `make try-light`, which takes a fresh environment; make's targets take minutes."""
    return not block.startswith(("make ", "python3 -m venv "))


def test_the_blocks_that_are_not_run_name_what_there_is():
    install, make = [block for _, block in BLOCKS if not is_run(block)]
    assert make.startswith("make ")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    (constraints, named) = re.search(r"pip install --constraint (\S+) '\.\[(\w+)\]'", install).groups()
    assert (ROOT / constraints).is_file()
    assert named in extras


def test_the_commands_in_its_sentences_are_the_commands_there_are():
    commands = typer.main.get_command(app).commands
    for name, rest in re.findall(r"`incdsi ([a-z]+)([^`]*)`", README):
        known = {flag for option in commands[name].params for flag in option.opts}
        assert set(re.findall(r"--[a-z-]+", rest)) <= known, name


@pytest.fixture
def light(tmp_path):
    """The environment of somebody without torch: importing it fails."""
    absent = tmp_path / "absent" / "torch"
    absent.mkdir(parents=True)
    (absent / "__init__.py").write_text("raise ImportError('torch is not installed')")
    path = [str(absent.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    scripts = tmp_path / "bin"
    scripts.mkdir()
    (scripts / "incdsi").write_text(f'#!/bin/sh\nexec {sys.executable} -m incdsi.cli "$@"\n')
    (scripts / "incdsi").chmod(0o755)
    others = {name: value for name, value in os.environ.items() if not name.startswith("INCDSI_")}
    return {**others, "PYTHONPATH": os.pathsep.join(path), "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.slow  # several processes, each loading the real encoder
def test_every_other_block_runs_as_it_stands_in_an_empty_folder_without_torch(tmp_path, light):
    folder, outputs = tmp_path / "empty", []
    folder.mkdir()
    for language, block in BLOCKS:
        if is_run(block):
            command = [sys.executable, "-c", block] if language == "python" else ["bash", "-e", "-c", block]
            run = subprocess.run(command, cwd=folder, env=light, capture_output=True, text=True, check=False)
            assert run.returncode == 0, run.stderr
            outputs.append(run.stdout)
    shell, library, solver = outputs
    assert re.findall(r"^1 .*?(\w+-\d+)", shell, re.MULTILINE) == ["boots-17", "stove-2"]
    assert library == "stove-2\n"
    assert "Status." in solver
    served(folder, light)


def served(folder, light):
    """`incdsi serve --index shop`, as a sentence names it, answers and has its page."""
    assert "`incdsi serve --index shop`" in README
    command = ["incdsi", "serve", "--index", "shop", "--json"]
    given = {**light, "INCDSI_PORT": "0"}
    with subprocess.Popen(command, cwd=folder, env=given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        try:
            address = json.loads(server.stdout.readline())["address"]
            found = httpx2.get(f"{address}/v1/search", params={"q": "gift for my dad"}, timeout=60).json()
            assert found["hits"][0]["document"]["id"] == "stove-2"
            assert "<title>incdsi" in httpx2.get(address, timeout=60).text
        finally:
            server.terminate()
