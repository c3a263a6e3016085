"""`make bench-no-harm`: is an index that knows nothing, one or three questions a document ever worse than plain search?

For each set and number of known questions an index is filled from empty, tunes itself as far as it can, and answers
test questions beside dense search, BM25 over the texts, and the sum of their standard scores. What is told is the
difference to each, question by question, with its 95 % interval.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.index.adding import fill
from benchmarks.index.quality import compared, index_ranks, probes, ranks_by
from benchmarks.index.run import Result, say
from benchmarks.index.sources import questions_of
from benchmarks.machine import write
from benchmarks.real import RealData, real_data
from incdsi_lab.anchors import Meaning, PlainHybrid, Words
from incdsi_lab.embedded import cache_home
from incdsi_lab.ranking import Ranks

SETS = ("squad_plus", "nq_passages", "clinc150")
KNOWN = (0, 1, 3)
TOLERANCE = 0.3  # points of H@1


def known_questions(data: RealData, most: int) -> dict[str, list[str]]:
    """At most so many training questions of each document, the same whenever they are drawn."""
    rng = np.random.default_rng(0)
    return {
        id: [some[place] for place in sorted(rng.permutation(len(some))[:most].tolist())]
        for id, some in questions_of(data).items()
    }


def harm(data: RealData, plain: dict[str, Ranks], known: int, folder: Path) -> Result:
    """An index with so many known questions a document, compared with plain search."""
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(folder, data, order, tuning=True, asked=known_questions(data, known))
    with index:
        ranks = {**index_ranks(index, probes(index, data)), **plain}
    found = compared(ranks, [("fused", way) for way in plain])
    least = min(found["differences"].values(), key=lambda one: float(one["h@1"]))
    return {
        "fill": filling,
        **found,
        "least_difference": least["h@1"],
        "never_below_by_more_than_the_tolerance": least["h@1"] >= -TOLERANCE,
        "shown_by_the_interval": least["interval"][0] >= -TOLERANCE,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--known", nargs="+", type=int, default=list(KNOWN), metavar="N")
    parser.add_argument("--documents", type=int, metavar="N", help="a drawn set of so many documents; all by default")
    arguments = parser.parse_args()
    found: dict[str, Result] = {}
    for name in arguments.sets:
        data = real_data(name)
        if arguments.documents and arguments.documents < len(data.documents):
            data = data.only(np.random.default_rng(0).permutation(len(data.documents))[: arguments.documents])
        say(f"{name}: plain search of {len(data.documents):,} documents by {len(data.test):,} questions")
        plain = ranks_by((Meaning(), Words(), PlainHybrid()), data, data.spans, data.test)
        found[name] = {"documents": len(data.documents)}
        for known in arguments.known:
            say(f"{name}: {known} known")
            with tempfile.TemporaryDirectory(dir=cache_home(), prefix="no-harm-") as folder:
                one = found[name][f"{known} known"] = harm(data, plain, known, Path(folder) / "index")
            for pair, difference in one["differences"].items():
                low, high = difference["interval"]
                say(f"  {pair}: {difference['h@1']:+.2f} [{low:+.2f}, {high:+.2f}], n = {difference['n']:,}")
        drawn = f"-{arguments.documents}" if arguments.documents else ""
        print("written to", write(f"no-harm-{name}{drawn}", {"tolerance": TOLERANCE, name: found[name]}))


if __name__ == "__main__":
    main()
