"""What a release rests on: one version, a changelog in order, a unit that systemd takes."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import incdsi
from tests.release import ADAPTERS, TYPED, version

ROOT = Path(__file__).parent.parent


def test_the_version_is_in_one_place() -> None:
    assert version() == incdsi.__version__
    for folder in (ROOT, *(ROOT / "integrations" / name for name in ADAPTERS)):
        project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
        assert project["project"]["dynamic"] == ["version"]
        assert (folder / project["tool"]["hatch"]["version"]["path"]).samefile(Path(incdsi.__file__))


def test_every_distribution_is_checked() -> None:
    assert {path.parent.name for path in (ROOT / "integrations").glob("*/pyproject.toml")} == {*ADAPTERS}
    assert {"incdsi", *ADAPTERS} == {*TYPED}


def test_the_changelog_says_what_was_added_changed_and_fixed_in_that_order() -> None:
    for release in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        parts = re.findall(r"^### (.*)$", release, re.MULTILINE)
        assert parts == [part for part in ("Added", "Changed", "Fixed") if part in parts], release.split("\n")[0]


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze here")
    unit = (ROOT / "docs" / "deploy" / "incdsi.service").read_text(encoding="utf-8")
    assert "/opt/incdsi/bin/incdsi" in unit
    copy = tmp_path / "incdsi.service"
    copy.write_text(unit.replace("/opt/incdsi/bin/incdsi", sys.executable), encoding="utf-8")  # which must exist
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
