"""No text, however hostile, takes more than linear time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_every_pattern_and_reader_takes_linear_time() -> None:
    root = Path(__file__).parent.parent
    run = subprocess.run(
        [sys.executable, "-m", "tests.linear_time_child"], cwd=root, capture_output=True, text=True, check=False
    )
    assert run.stdout + run.stderr == ""
