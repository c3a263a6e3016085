"""What README.md shows works as it stands, and its links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "decisions").glob("*.md")])
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)


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


@pytest.mark.slow  # several processes, each loading the real encoder
def test_its_commands_run_in_an_empty_folder(tmp_path):
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    outputs = []
    for language, block in BLOCKS:
        if block.startswith(("make ", "python3 -m venv ")):
            continue
        command = [sys.executable, "-c", block] if language == "python" else ["bash", "-e", "-c", block]
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        outputs.append(run.stdout)
    shell, library, _ = outputs
    assert re.findall(r"^1 .*?(\w+-\d+)", shell, re.MULTILINE) == ["boots-17", "stove-2"]
    assert library == "stove-2\n"
