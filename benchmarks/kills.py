"""A thousand kill -9 of the process that writes, over every verb, with readers beside it: `make kills`.

The writers and readers are those of tests/index/test_index_crash.py: real ONNX encoders of a few kilobytes, two
dozen documents, every verb killed in its turn and at random moments. After each kill the index is opened, verified
byte by byte and compared with what was acknowledged; so is a backup or a restored copy if there is one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.machine import machine, write
from benchmarks.progress import Countdown

sys.path += [str(Path(__file__).parents[1] / "tests" / room) for room in ("index", "store")]
sys.modules["torch"] = None  # type: ignore[assignment]  # not needed, and slow to import

from crash_survival import Tally, survive  # noqa: E402


def told(tally: Tally, kills: int, readers: int, seed: int, seconds: float) -> dict[str, object]:
    """The figures, the ones that matter first."""
    return {
        "kills": kills,
        "lost": len(tally.lost),
        "torn": len(tally.torn),
        "first_lost_or_torn": [*tally.lost, *tally.torn][:5],
        "killed_during": dict(sorted(tally.kills.items())),
        "killed_between_two_verbs": tally.between,
        "on_the_disk_though_not_acknowledged": dict(sorted(tally.kept.items())),
        "acknowledged": sum(tally.acknowledged.values()),
        "acknowledged_by_verb": dict(sorted(tally.acknowledged.items())),
        "readers": readers,
        "checked_searches_of_readers": tally.searches,
        "seed": seed,
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="fewer than 1,000 write no results")
    parser.add_argument("--readers", type=int, default=3)
    parser.add_argument("--seed", type=int, default=random.randrange(2**31))
    given = parser.parse_args()
    print(json.dumps(machine()))
    countdown, begun = Countdown(given.kills, "kills"), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="incdsi-kills-") as folder:
        shop = Path(folder) / "shop"
        tally = survive(shop, kills=given.kills, readers=given.readers, seed=given.seed, progress=countdown.show)
    countdown.end()
    found = told(tally, given.kills, given.readers, given.seed, time.monotonic() - begun)
    print(json.dumps(found, indent=1))
    if given.kills >= 1000:
        print("written to", write("kills", found))
    if tally.lost or tally.torn:
        sys.exit("something was lost or torn: see above")


if __name__ == "__main__":
    main()
