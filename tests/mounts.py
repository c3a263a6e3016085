"""Small disks and folders that cannot be written, where mounting is permitted."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(target: Path, *options: str) -> Iterator[Path]:
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command")
    target.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, str(target)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted here: {done.stderr.strip()}")
    try:
        yield target
    finally:
        subprocess.run(["umount", str(target)], check=True)


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[Path]:
    with mounted(folder.with_name("view"), "--bind", str(folder)) as view:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(view)], check=True)
        yield view
