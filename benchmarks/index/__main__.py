"""`make bench-index`."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks.index import __doc__ as about
from benchmarks.index.parts import reading, rounds, scale, squad
from benchmarks.index.peers import peers
from benchmarks.index.quality import quality_clinc, quality_nq, quality_squad
from benchmarks.index.run import SMALL, Result, Run, Size, say
from benchmarks.index.sources import cut_sets
from benchmarks.index.telling import aims, ratios, show
from benchmarks.machine import machine, write
from incdsi_lab.embedded import cache_home

PARTS: dict[str, Callable[[Run], Result]] = {
    "squad": squad,
    "peers": peers,
    "scale": scale,
    "rounds": rounds,
    "quality-squad": quality_squad,
    "quality-nq": quality_nq,
    "quality-clinc": quality_clinc,
}
# What is written together was measured in one run; quality does not depend on how busy the machine is.
QUALITY = ("quality-squad", "quality-nq", "quality-clinc")
GROUPS = {"index": {"squad", "peers", "scale", "rounds"}, **{f"index-{part}": {part} for part in QUALITY}}
INSIDE: dict[str, Callable[[Run], Result]] = {
    "read-squad": lambda run: reading(run, "squad"),
    "read-scale": lambda run: reading(run, "scale"),
}


ONLY = "these parts; a result is written when all its parts were run"


def work_folder() -> Path:
    """In the user's cache: a temporary folder in memory would make every commit look free."""
    home = cache_home()
    home.mkdir(parents=True, exist_ok=True)
    return home


def run_all(run: Run, names: Sequence[str]) -> tuple[dict[str, Result], list[str]]:
    """What each part found, and the parts that failed; one that fails does not stop the others."""
    parts, failed = {}, []
    for name in names:
        say(f"part {name}")
        begin = time.perf_counter()
        try:
            parts[name] = run.child(name)
        except subprocess.CalledProcessError as error:
            say(f"part {name} failed with status {error.returncode}")
            failed.append(name)
            continue
        parts[name]["part_seconds"] = time.perf_counter() - begin
        say(f"part {name} took {parts[name]['part_seconds']:.0f} s")
    return parts, failed


def main() -> None:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
        help=ONLY,
    )
    parser.add_argument("--small", action="store_true", help="tiny sizes, to see that it runs; nothing is written")
    parser.add_argument(
        "--documents", type=int, metavar="N", help="a drawn set of so many documents in the parts about quality"
    )
    parser.add_argument("--child", choices=[*PARTS, *INSIDE], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    size = SMALL if arguments.small else Size()
    if arguments.child:
        run = Run(size=size, folder=arguments.folder, small=arguments.small, documents=arguments.documents)
        print(json.dumps({**PARTS, **INSIDE}[arguments.child](run)))
        return
    print(json.dumps(machine()))
    with tempfile.TemporaryDirectory(dir=work_folder(), prefix="index-") as folder:
        run = Run(size=size, folder=Path(folder), small=arguments.small, documents=arguments.documents)
        if size.cut is not None:
            cut_sets(run.folder, size.cut)
        parts, failed = run_all(run, arguments.only)
    show(parts)
    for name, group in GROUPS.items():
        if group <= parts.keys() and not arguments.small:
            found = {part: parts[part] for part in PARTS if part in group}
            told = [{**asdict(aim), "met": aim.met} for aim in aims(found)]
            drawn = f"-{arguments.documents}" if arguments.documents and name != "index" else ""
            print("written to", write(name + drawn, {"ratios": ratios(found), "aims": told, "parts": found}))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
