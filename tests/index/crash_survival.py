"""Writers of an index killed over and over, with readers beside them: what was lost or torn."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "store"))

from crash_harness import acknowledged, discard, line, run_until_killed, verb_of, worker
from index_worker import VERBS, State, after, digest, encoder_folder, state_of
from tiny_models import tiny_model

from incdsi.errors import IncDSIError
from incdsi.index import Index
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

WORKER = Path(__file__).with_name("index_worker.py")
AIMS = [verb for verb in VERBS if verb != "reopen"]


@dataclass(kw_only=True)
class Tally:
    """What happened: `kills` by the verb that was under way, sentences about what was `lost` or `torn`."""

    kills: Counter[str] = field(default_factory=Counter)
    between: int = 0  # kills after an acknowledgement and before the next verb
    acknowledged: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)  # verbs that a kill stopped after they were on the disk
    lost: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)
    searches: int = 0

    def count(self, said: list[str]) -> None:
        """The verbs of one writer's life."""
        tried = [verb_of(word) for word in said if word != "ack"]
        done = said.count("ack")
        self.acknowledged.update(tried[:done])
        self.kills.update(tried[done:])
        self.between += len(tried) == done


def survive(
    folder: Path, *, kills: int, readers: int, seed: int, progress: Callable[[int], None] = lambda done: None
) -> Tally:
    """Kill writers of an index in `folder`, the verbs in turn, and look at what each of them left."""
    tally, choice, state = Tally(), random.Random(seed), begin(folder)
    durations: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        forker = stack.enter_context(worker(WORKER, "fork"))
        reading = [stack.enter_context(worker(WORKER, "read", str(folder))) for _ in range(readers)]
        assert [line(process) for process in reading] == ["reading"] * readers
        for number in range(kills):
            aim = AIMS[number % len(AIMS)]
            begun = time.monotonic()
            within = durations.get(aim, 0.05)
            said = run_until_killed(forker, folder, choice, aim=aim, within=within, acks=choice.randrange(3))
            # Killed too early or too late too often, a verb would not be met in its middle.
            late = verb_of(next(word for word in reversed(said) if word != "ack")) != aim or said[-1] == "ack"
            durations[aim] = min(within * (0.8 if late else 1.2), time.monotonic() - begun)
            tally.count(said)
            state = _looked_at(folder, state, said, tally)
            if any(process.poll() is not None for process in reading):
                tally.torn.append("a reader died")
                break
            progress(number + 1)
        with Index.open(folder) as index:
            _ask_readers(reading, digest(index), tally)
    for name in ("backup", "restored"):
        discard(folder.with_name(name))
    return tally


def begin(folder: Path) -> State:
    """An empty index that tunes itself when told to, and the two encoders it is moved between."""
    encoders = [tiny_model(encoder_folder(folder, number), seed=number) for number in range(2)]
    with Index.create(folder, OnnxEncoder(encoders[0].folder)) as index:
        return state_of(index, folder)


def normal(state: State) -> State:
    return {id: [revision, sorted(queries)] for id, (revision, queries) in sorted(state.items())}


def unlike(state: State, expected: State) -> dict[str, object]:
    """The documents that differ, as found and as expected."""
    found, wanted = normal(state), normal(expected)
    return {id: (found.get(id), wanted.get(id)) for id in found | wanted if found.get(id) != wanted.get(id)}


def _looked_at(folder: Path, state: State, said: list[str], tally: Tally) -> State:
    """What is there after a kill; what is missing or broken goes into the tally."""
    certain, possible = acknowledged(state, said, after)
    found = _held(folder, folder, tally)
    if found is None:
        return certain
    if normal(found) not in (normal(certain), normal(possible)):
        tally.lost.append(f"{unlike(found, certain)} besides what was certain, after {said[-4:]}")
    elif said[-1] != "ack" and normal(found) == normal(possible) != normal(certain):
        tally.kept[verb_of(said[-1])] += 1
    for name in ("backup", "restored"):
        copy = _held(folder.with_name(name), folder, tally) if folder.with_name(name).exists() else None
        if copy is not None and normal(copy) != normal(certain):
            tally.torn.append(f"{name} differs: {unlike(copy, certain)}")
    return found


def _held(place: Path, folder: Path, tally: Tally) -> State | None:
    """What the index in `place` holds; None, and a sentence in the tally, when it is broken."""
    try:
        with Index.open(place) as index:
            tally.torn += index.verify()
            found = state_of(index, folder)
            # By the learned score: tuning may leave everything to words, and then only those that share one are found.
            searched, stored = len(index.search("boots", 1000, mode="learned")), sum(id[0] != "#" for id in found)
            if not len(index) == searched == stored:
                tally.torn.append(f"{place.name}: {stored} stored, {len(index)} counted, {searched} searched")
            return found
    except (IncDSIError, AssertionError) as error:
        tally.torn.append(f"{place.name}: {error!r}")
        return None


def _ask_readers(reading: list[subprocess.Popen[str]], expected: str, tally: Tally) -> None:
    for process in reading:
        assert process.stdin is not None
        process.stdin.close()
        found, searches = (line(process) or "nothing 0").split()
        if found != expected or process.wait() != 0:
            tally.torn.append("a reader ended with other answers than the index gives")
        tally.searches += int(searches)
