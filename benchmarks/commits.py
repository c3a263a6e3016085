"""`make bench-commits COMMIT=8669fb7~1`: an older commit's additions and searches beside today's, in one run.

Each commit runs its own parts `squad` (real documents, tuned) and `scale` (100,000 synthetic ones) of bench-index, in
turn, in a worktree of its own. The median is of wall-clock time, so nothing else should run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.index.run import MODES, Result, say
from benchmarks.machine import write
from incdsi_lab.data.location import ENVIRONMENT, data_home
from incdsi_lab.embedded import cache_home

ROOT = Path(__file__).parent.parent
PARTS = ("squad", "scale")


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """A worktree of that commit, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="commit-") as folder:
        place = Path(folder) / "tree"
        _git("worktree", "add", "--detach", str(place), commit)
        try:
            yield place
        finally:
            _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def part(tree: Path, name: str) -> Result:
    """What that tree's own benchmark finds, as figures by name in ms."""
    paths = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", ENVIRONMENT: str(data_home().resolve())}
    environment = {"OPENBLAS_NUM_THREADS": "1", **os.environ, **paths}  # as the command line and the server have it
    with tempfile.TemporaryDirectory(dir=cache_home(), prefix="commits-") as folder:
        command = [sys.executable, "-m", "benchmarks.index", "--child", name, "--folder", folder]
        run = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return figures(json.loads(run.stdout.splitlines()[-1]))


def figures(found: dict[str, Any]) -> Result:
    """The medians that both commits tell: additions and searches, all without encoding."""
    adds, reading = found["adds"], found["reading"]
    searches = {f"{mode} search": reading["search"][mode]["without_encoding"]["p50_ms"] for mode in MODES}
    return {
        "placing one by one": adds["one_by_one"]["core"]["p50_ms"],
        "add one by one": adds["one_by_one"]["without_encoding"]["p50_ms"],
        "add in a batch": adds["batch"]["without_encoding_ms"],
        **searches,
        "n": {"adds": adds["one_by_one"]["core"]["n"], "searches": reading["search"]["learned"]["whole"]["n"]},
        "documents": found["documents"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", help="the older one, such as v1.0 or 8669fb7~1")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments = parser.parse_args()
    names = {"before": _git("rev-parse", "--short", arguments.commit), "now": _git("rev-parse", "--short", "HEAD")}
    results: dict[str, Result] = {}
    with checked_out(arguments.commit) as old:
        for name in arguments.parts:
            results[name] = {}
            for when, tree in (("before", old), ("now", ROOT)):
                say(f"{name}, {when} ({names[when]})")
                results[name][when] = part(tree, name)
    for name, both in results.items():
        for what, ms in both["before"].items():
            if isinstance(ms, float):
                now = both["now"][what]
                print(f"{name:6} {what:20} {ms:8.2f} -> {now:8.2f} ms, {ms / now:5.2f} times as fast")
    print("written to", write("commits", {"commits": names, "parts": results}))


if __name__ == "__main__":
    main()
