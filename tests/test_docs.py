"""Every command and every line of Python that the documentation shows runs, page by page, in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
NAVIGATION = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = {
    str(page.relative_to(DOCS)): BLOCK.findall(page.read_text(encoding="utf-8"))
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent.name
    not in ("decisions", "integrations")  # those run where the frameworks are: integrations/test_pages.py
}
# Sizes that take minutes are smaller here; INCDSI_WHOLE_DOCS=1 keeps them.
SMALLER = {"10_000, 1_000_000, 100": "600, 60_000, 8"}
APART = "CLI.md"  # its examples run in tests/cli/test_examples_run.py
SHOWN = {page: blocks for page, blocks in PAGES.items() if blocks and page != APART}
# Text of these kinds is shown and not run: output, configuration, and what needs another product or the network.
SILENT = {"", "text", "nginx", "json", "toml", "yaml", "http"}


def test_the_tutorial_and_the_guides_are_among_the_pages_that_run() -> None:
    assert {"index.md", "tutorial.md", "how-to/table.md", "how-to/notes.md"} <= SHOWN.keys()


def test_the_site_lists_every_page_once() -> None:
    names = re.findall(r"^ +- [^:]+: (\S+\.md)$", NAVIGATION, re.MULTILINE)
    beside = ("decisions", "results", "pictures")  # linked from pages
    pages = {
        str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.relative_to(DOCS).parts[0] not in beside
    }
    assert sorted(names) == sorted(pages | {"results/README.md"})


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_block_is_run_or_says_what_it_is(page: str) -> None:
    fences = re.findall(r"^```(.*)$", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= SILENT | {"bash", "python"}


@pytest.mark.slow  # the real encoder, and a process for each block of commands
@pytest.mark.parametrize("page", sorted(SHOWN))
def test_what_a_page_shows_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    names: dict[str, object] = {"__name__": "__main__"}
    for language, shown in SHOWN[page]:
        block = shown
        for large, small in () if os.environ.get("INCDSI_WHOLE_DOCS") else SMALLER.items():
            block = block.replace(large, small)
        if language == "python":
            exec(compile(block, page, "exec"), names)
        else:
            command = ["bash", "-euo", "pipefail", "-c", block]
            run = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)
            assert run.returncode == 0, f"{block}\n{run.stdout}\n{run.stderr}"
