"""`make bench-feedback`: `teach` beside what others offer for "this was the right document".

    python -m benchmarks.feedback [--documents 1000] [--taught 500] [--only clinc]

Every way begins with the documents' texts alone and the same embeddings, is taught the same questions one after
another, and is asked the same questions before and after: those that were taught, others of the same documents, and
others of documents that were taught nothing. A lesson's time includes encoding, and the next search knows it; the
processor's time, which a busy machine changes little, is told too. A reranker is not among them: no weights
of a cross-encoder were at hand, and a threshold on its score puts no document first.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.feedback.courses import Course, clinc, squad
from benchmarks.feedback.examples import Both, Feedback, MorePoints, Moved, Recommended, Rocchio
from benchmarks.feedback.ways import Appended, Taught, Way, Words
from benchmarks.index.run import WARM, Result, say, spread
from benchmarks.machine import write
from incdsi_lab.embedded import cache_home
from incdsi_lab.metrics import CONFIDENCE, wilson

Make = Callable[[Course, Path], Way]
Right = NDArray[np.bool_]
WAYS: tuple[Make, ...] = (
    Taught,
    MorePoints,
    Moved,
    Words,
    Both,
    partial(Recommended, strategy="average_vector"),
    partial(Recommended, strategy="best_score"),
    Rocchio,
    Feedback,
    Appended,
)
ASKED = ("lessons", "paraphrases", "others")
NAMES = ("clinc", "clinc-half", "squad")  # of courses, and of the files in benchmarks/results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000, help="so many of squad_plus, drawn at random")
    parser.add_argument("--taught", type=int, default=500, help="of these, so many are taught a question")
    parser.add_argument("--only", choices=NAMES, help="one course alone")
    given = parser.parse_args()
    courses: dict[str, Callable[[], Course]] = {
        "clinc": partial(clinc, 150),
        "clinc-half": partial(clinc, 75),
        "squad": partial(squad, given.documents, given.taught),
    }
    versions = {name: metadata.version(name) for name in ("qdrant-client", "chromadb", "bm25s")}
    for name in [given.only] if given.only else NAMES:
        for found in compared(courses[name]()):  # what is finished outlasts what is not
            path = write(f"feedback-{name}", {"versions": versions, **found})
        print(path)


def compared(course: Course) -> Iterator[Result]:
    """One way after another on a course, each beside the first question by question; all so far, each time."""
    counts = {part: len(getattr(course, part)) for part in (*ASKED, "validation")}
    print(f"{course.name}: n = {counts}", flush=True)
    rows: list[Result] = []
    ours: dict[str, Right] = {}
    for make in WAYS:
        with tempfile.TemporaryDirectory(dir=cache_home()) as folder:
            row, after = followed(make(course, Path(folder)))
        ours = ours or after
        row["incdsi_less_this"] = {part: difference(ours[part], first) for part, first in after.items()}
        show(row)
        rows.append(row)
        yield {"course": course.name, "documents": len(course.data.documents), "n": counts, "ways": rows}


def followed(way: Way) -> tuple[Result, dict[str, Right]]:
    """What one way makes of a course, and which questions it answers afterwards."""
    course = way.course
    say(f"{way.system}: {way.name}")
    before = right(way)
    seconds, busy = [], []
    for text, place in zip(course.lessons.texts, course.lessons.owners.tolist(), strict=True):
        begin, started = time.perf_counter(), time.process_time()
        way.teach(text, place)
        busy.append(time.process_time() - started)
        seconds.append(time.perf_counter() - begin)
    chosen = way.choose(course.validation)
    after = right(way)
    row: Result = {"system": way.system, "way": way.name, "chosen": chosen}
    timed = slice(WARM, way.timed_lessons)
    row |= {"lesson": spread(seconds[timed]), "lesson_cpu": spread(busy[timed])}
    return {**row, **{part: change(before[part], after[part]) for part in after}}, after


def right(way: Way) -> dict[str, Right]:
    """By part of the course, which questions find their document first."""
    parts = {part: getattr(way.course, part) for part in ASKED}
    return {part: way.first(asked) == asked.owners for part, asked in parts.items() if len(asked)}


def change(before: Right, after: Right) -> Result:
    """Shares in percent with their intervals, and how many questions became first or are first no more."""
    return {
        "n": len(before),
        "first_before": _share(before),
        "first_after": _share(after),
        "became_first": int((after & ~before).sum()),
        "no_longer_first": int((before & ~after).sum()),
        **{f"change_{name}": value for name, value in difference(after, before).items()},
    }


def difference(left: Right, right: Right) -> Result:
    """Points of H@1 between two ways, question by question, with the 95 % interval."""
    each = 100.0 * (left.astype(float) - right)
    mean, error = float(each.mean()), float(each.std() / np.sqrt(len(each)))
    return {"points": mean, "interval": [mean - CONFIDENCE * error, mean + CONFIDENCE * error]}


def _share(first: Right) -> Result:
    hits = first.astype(np.float64)
    return {"percent": 100.0 * float(hits.mean()), "interval": [100.0 * end for end in wilson(hits)]}


def show(row: Result) -> None:
    """A line a way, as soon as it is known: first before > after (became first, no longer first), a lesson's median."""
    cells = [
        f"{part} {one['first_before']['percent']:.1f} > {one['first_after']['percent']:.1f}"
        f" (+{one['became_first']} -{one['no_longer_first']})"
        for part in ASKED
        if (one := row.get(part))
    ]
    cells += [f"{row['lesson']['p50_ms']:.1f} ms, CPU {row['lesson_cpu']['p50_ms']:.1f}", str(row["chosen"] or "")]
    print(f"  {row['system']:15}{row['way']:38}{'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
