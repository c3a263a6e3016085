"""`make bench-no-harm`: is an index that knows few questions, or none, ever worse than plain search?

For each set and number of known questions a document an index is filled from empty, tunes itself as far as it can, and
answers test questions beside dense search, BM25 over the texts, and the sum of their standard scores. What is told is
the difference to each, question by question, with its 95 % interval. Where questions are known of some documents alone,
those for them and those for the others are told apart too, with BM25 over texts and known questions beside them.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.index.adding import fill
from benchmarks.index.quality import compared, index_ranks, probes, ranks_by
from benchmarks.index.run import Result, say
from benchmarks.index.sources import questions_of
from benchmarks.machine import write
from benchmarks.real import RealData, real_data
from incdsi.errors import InvalidInput
from incdsi_lab.anchors import KnownWords, Meaning, PlainHybrid, Words
from incdsi_lab.baselines.protocol import joined
from incdsi_lab.embedded import cache_home
from incdsi_lab.ranking import Ranks

SETS = ("squad_plus", "nq_passages", "clinc150")
KNOWN = (0, 1, 3)
SOME = ((1, 0.05), (1, 0.2), (1, 0.5), (100, 0.2))  # so many known of a share of the documents
KINDS = ("all", "asked for", "never asked for")
TOLERANCE = 0.3  # points of H@1


def share_of(text: str) -> tuple[int, float]:
    """N:SHARE as two numbers."""
    most, _, share = text.partition(":")
    try:
        return int(most), float(share)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not N:SHARE, such as 1:0.2") from None


def known_questions(data: RealData, most: int) -> dict[str, list[str]]:
    """At most so many training questions of each document, the same whenever they are drawn."""
    rng = np.random.default_rng(0)
    return {
        id: [some[place] for place in sorted(rng.permutation(len(some))[:most].tolist())]
        for id, some in questions_of(data).items()
    }


def known_of_some(data: RealData, most: int, share: float) -> dict[str, list[str]]:
    """At most so many training questions of that share of the documents; InvalidInput when not so many have any."""
    known = known_questions(data, most)
    having, wanted = [id for id, some in known.items() if some], round(share * len(known))
    if wanted > len(having):
        raise InvalidInput(f"of {len(known):,} documents {len(having):,} have a training question, not {wanted:,}")
    chosen = {having[place] for place in np.random.default_rng(1).permutation(len(having))[:wanted].tolist()}
    return {id: some if id in chosen else [] for id, some in known.items()}


def searched(
    data: RealData, plain: dict[str, Ranks], known: Mapping[str, Sequence[str]], folder: Path
) -> tuple[dict[str, Ranks], Result]:
    """The ranks of test questions by an index that knows these questions and by plain search; how it was filled."""
    order = np.random.default_rng(0).permutation(len(data.documents))
    index, filling = fill(folder, data, order, tuning=True, asked=known)
    with index:
        return {**index_ranks(index, probes(index, data)), **plain}, filling


def harm(ranks: dict[str, Ranks], plain: Sequence[str], beside: Sequence[str] = ()) -> Result:
    """Fused search compared with plain search, and with what stands `beside` it, which is no plain search."""
    found = compared(ranks, [("fused", way) for way in (*plain, *beside)])
    least = min((found["differences"][f"fused - {way}"] for way in plain), key=lambda one: float(one["h@1"]))
    return {
        **found,
        "least_difference": least["h@1"],
        "never_below_by_more_than_the_tolerance": least["h@1"] >= -TOLERANCE,
        "shown_by_the_interval": least["interval"][0] >= -TOLERANCE,
    }


def harm_by_kind(ranks: dict[str, Ranks], plain: Sequence[str], asked: NDArray[np.bool_]) -> Result:
    """The same for all test questions, for those of documents that were asked for, and for the others'."""
    beside = [way for way in ranks if way not in plain and way != "fused"]
    kinds = zip(KINDS, (np.ones_like(asked), asked, ~asked), strict=True)
    return {kind: harm({way: some[there] for way, some in ranks.items()}, plain, beside) for kind, there in kinds}


def harm_of_some(data: RealData, plain: dict[str, Ranks], known: dict[str, list[str]], folder: Path) -> Result:
    """An index that knows questions of some documents alone, compared with plain search."""
    ranks, filling = searched(data, plain, known, folder)
    texts = {(id, text) for id, some in known.items() for text in some}
    pairs = zip(data.train.owners, data.train.texts, strict=True)
    places = [place for place, (owner, text) in enumerate(pairs) if (data.documents[owner].id, text) in texts]
    questions = joined([data.train.take(np.array(places, dtype=np.intp)), data.spans])
    ranks |= ranks_by([KnownWords()], data, questions, data.test)
    asked = np.array([bool(known[document.id]) for document in data.documents])
    kinds = harm_by_kind(ranks, list(plain), asked[data.test.owners])
    return {"fill": filling, "asked_for": int(asked.sum()), **kinds}


def told(found: Result) -> None:
    for pair, difference in found["differences"].items():
        low, high = difference["interval"]
        say(f"  {pair}: {difference['h@1']:+.2f} [{low:+.2f}, {high:+.2f}], n = {difference['n']:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--sets", nargs="+", default=list(SETS), metavar="SET", help=f"{', '.join(SETS)}, or a folder such as theirs"
    )
    parser.add_argument("--known", nargs="+", type=int, default=list(KNOWN), metavar="N")
    parser.add_argument(
        "--some",
        nargs="*",
        type=share_of,
        default=list(SOME),
        metavar="N:SHARE",
        help="N known of a share of documents",
    )
    parser.add_argument("--documents", type=int, metavar="N", help="a drawn set of so many documents; all by default")
    arguments = parser.parse_args()
    for given in arguments.sets:
        if given not in SETS and not Path(given).is_dir():
            parser.error(f"there is no set {given!r}; choose from {', '.join(SETS)}, or name a folder such as theirs")
    found: dict[str, Result] = {}
    for given in arguments.sets:
        data, name = real_data(str(Path(given).resolve()) if Path(given).is_dir() else given), Path(given).name
        if arguments.documents and arguments.documents < len(data.documents):
            data = data.only(np.random.default_rng(0).permutation(len(data.documents))[: arguments.documents])
        say(f"{name}: plain search of {len(data.documents):,} documents by {len(data.test):,} questions")
        plain = ranks_by((Meaning(), Words(), PlainHybrid()), data, data.spans, data.test)
        found[name] = {"documents": len(data.documents)}
        for known in arguments.known:
            say(f"{name}: {known} known")
            with tempfile.TemporaryDirectory(dir=cache_home(), prefix="no-harm-") as folder:
                ranks, filling = searched(data, plain, known_questions(data, known), Path(folder) / "index")
            found[name][f"{known} known"] = {"fill": filling, **harm(ranks, list(plain))}
            told(found[name][f"{known} known"])
        for most, share in arguments.some:
            label = f"{most} known of {share:.0%}"
            say(f"{name}: {label}")
            try:
                known_of = known_of_some(data, most, share)
            except InvalidInput as error:
                say(f"  left out: {error}")
                continue
            with tempfile.TemporaryDirectory(dir=cache_home(), prefix="no-harm-") as folder:
                one = found[name][label] = harm_of_some(data, plain, known_of, Path(folder) / "index")
            for kind in KINDS:
                say(f"  {kind}")
                told(one[kind])
        drawn = f"-{arguments.documents}" if arguments.documents else ""
        print("written to", write(f"no-harm-{name}{drawn}", {"tolerance": TOLERANCE, name: found[name]}))


if __name__ == "__main__":
    main()
