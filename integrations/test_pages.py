"""Each page's code runs as it stands, and each distribution says the same version, licence and types."""

from __future__ import annotations

import filecmp
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.index.index_samples import TOY

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "integrations"
DISTRIBUTIONS = sorted(path.parent for path in Path(__file__).parent.glob("*/pyproject.toml"))
SAID = {"langchain": (4, 2), "haystack": (2, 1), "llamaindex": (2, 1)}  # lines printed, and which of them was taught
OPTIONAL = ("pyterrier", "mteb", "dspy")


def run(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names that a page's code leaves, run in an empty folder."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr("incdsi.index.index.as_encoder", lambda _: TOY)
    blocks = re.findall(r"^```python\n(.*?)^```", (PAGES / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(compile(block, f"{page}.md", "exec"), names)
    return names


@pytest.mark.parametrize("page", SAID)
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = run(page, tmp_path, monkeypatch)
    said = capsys.readouterr().out.split("\n")[:-1]
    count, taught = SAID[page]
    assert (len(said), said[taught]) == (count, "stove-2")  # the toy encoder knows no meanings
    (names["index"] if page == "llamaindex" else names["store"]).index.close()


@pytest.mark.parametrize("page", OPTIONAL)
def test_the_code_of_a_page_runs_where_its_framework_is_installed(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip(page)
    names = run(page, tmp_path, monkeypatch)
    said = capsys.readouterr().out
    assert {"pyterrier": "1.0", "mteb": "stove-2", "dspy": "stove-2"}[page] in said
    for one in (names.get("index"), getattr(names.get("retriever"), "index", None)):
        if one is not None:
            one.close()


def test_every_page_is_run() -> None:
    assert {page.stem for page in PAGES.glob("*.md")} == {*SAID, *OPTIONAL}


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=lambda path: path.name)
def test_a_distribution_has_the_licence_the_version_and_the_types_of_the_repository(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert (folder / project["tool"]["hatch"]["version"]["path"]).samefile(ROOT / "src" / "incdsi" / "__init__.py")
    assert filecmp.cmp(folder / "LICENSE", ROOT / "LICENSE", shallow=False)
    packages = {path.parent for path in folder.glob("src/**/*.py")}
    assert all((package / "py.typed").exists() for package in packages)
