"""The whole study: choose experiments, run what is not finished, write the report."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from incdsi.errors import InvalidInput
from incdsi.progress import Progress
from incdsi_lab.experiments import (
    beta,
    curves,
    document_text,
    frontier,
    generated_only,
    hinge,
    long_stream,
    main_table,
    no_harm,
    product,
    query_count,
    rule,
    starts,
    times,
)
from incdsi_lab.experiments.comparing import duration, unique
from incdsi_lab.experiments.seeds import write_spread
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task, run_tasks
from incdsi_lab.report.machine import PACKAGES, machine
from incdsi_lab.report.pages import About, write_report

ALL: tuple[ModuleType, ...] = (
    main_table,
    rule,
    product,
    curves,
    times,
    generated_only,
    beta,
    query_count,
    hinge,
    document_text,
    starts,
    long_stream,
    frontier,
    no_harm,
)
EXPERIMENTS: Mapping[str, ModuleType] = {module.NAME: module for module in ALL}
VERSIONS = (*PACKAGES, "scipy", "optuna", "ir-measures", "bm25s", "matplotlib")


def chosen(names: Iterable[str]) -> list[str]:
    """The experiments with these names in the report's order, all if none is named; InvalidInput lists them."""
    wanted = set(names) or set(EXPERIMENTS)
    if unknown := sorted(wanted - set(EXPERIMENTS)):
        raise InvalidInput(f"no experiment is called {', '.join(unknown)}; there are {', '.join(EXPERIMENTS)}")
    return [name for name in EXPERIMENTS if name in wanted]


def tasks_of(study: Study, names: Sequence[str]) -> list[Task]:
    """All tasks of these experiments, shared ones once."""
    return unique([task for name in names for task in EXPERIMENTS[name].tasks(study)])


def run_study(study: Study, names: Sequence[str], *, command: str, progress: Progress | None = None) -> Path:
    """Run what is not finished and write the report of these experiments; the path of the HTML page."""
    tasks = tasks_of(study, names)
    run_tasks(tasks, study.pieces, progress)
    sections = [EXPERIMENTS[name].section(study) for name in names]
    return write_report(study.pieces.folder, _about(study, tasks, command), sections)


def run_studies(
    studies: Iterable[Study],
    folder: Path,
    names: Sequence[str],
    *,
    count: int,
    command: str,
    progress: Progress | None = None,
) -> tuple[Path, list[Study]]:
    """The same study with `count` seeds, each in a folder of its own, and one report of all; its page."""
    finished: list[Study] = []
    for study in studies:
        run_study(study, names, command=command, progress=_one_of(count, len(finished), progress))
        finished.append(study)
    about = [_about(study, tasks_of(study, names), command) for study in finished]
    first = about[0]
    facts = {
        **{name: first.facts[name] for name in ("encoder", "hardware", "versions", "settings")},
        **{
            f"split of seed {study.settings.seed}": one.facts["split"]
            for study, one in zip(finished, about, strict=True)
        },
        **{
            f"time of seed {study.settings.seed}": one.facts["time"] for study, one in zip(finished, about, strict=True)
        },
    }
    together = About(title=f"{first.title}, {len(finished)} seeds", summary=first.summary, command=command, facts=facts)
    return write_spread(folder, finished, names, together), finished


def _one_of(count: int, before: int, progress: Progress | None) -> Progress | None:
    """The progress of one of so many studies, as that of all of them in thousandths of one."""
    if progress is None:
        return None
    return lambda done, of: progress(1000 * before + 1000 * done // max(1, of), 1000 * count)


def took(study: Study, names: Sequence[str]) -> dict[str, float]:
    """Seconds each experiment's own pieces took; shared pieces count for the first that uses them."""
    seen: set[str] = set()
    seconds = {}
    for name in names:
        mine = [task.name for task in EXPERIMENTS[name].tasks(study) if task.name not in seen]
        seen.update(mine)
        seconds[name] = sum(study.piece(piece)["took"] for piece in mine if piece in study.pieces)
    return seconds


def _about(study: Study, tasks: Sequence[Task], command: str) -> About:
    data, split = study.data, study.split
    total = sum(study.piece(task.name)["took"] for task in tasks)
    found = machine(VERSIONS)
    facts: dict[str, Any] = {
        "data": f"{data.collection.name}, sha256 {data.collection.digest[:16]}",
        "split": f"seed {split.seed}: {len(split.initial):,} initial, {len(split.new):,} new, {len(split.tuning):,} "
        f"tuning documents; {len(split.train):,} train, {len(split.val):,} validation, "
        f"{len(split.test):,} test queries",
        "encoder": f"fingerprint {data.encoder.fingerprint[:16]}, dimension {data.encoder.dimension}",
        "seeds": f"split {split.seed}, everything else {study.settings.seed}; orders 0 to {study.settings.orders - 1}",
        "hardware": f"{found['cpu']}, {found['cores']} cores, {found['memory_gib']} GiB",
        "versions": ", ".join(f"{name} {found[name]}" for name in ("python", *VERSIONS)),
        "settings": ", ".join(f"{name} {_shown(value)}" for name, value in asdict(study.settings).items()),
        "time": f"{duration(total)} for all pieces of this report; {duration(total + sum(data.seconds.values()))} "
        "with the embedding",
        "embedding": ", ".join(f"{name} {duration(seconds)}" for name, seconds in data.seconds.items()),
    }
    return About(title=f"IncDSI on {data.collection.name}", summary=_summary(study), command=command, facts=facts)


def _summary(study: Study) -> tuple[str, ...]:
    split = study.split
    return (
        f"An index of {len(split.initial):,} documents takes {len(split.new):,} new ones. How far is each way of "
        "adding them from retraining on everything, on old and on new documents, and how many times faster is it? "
        "Validation queries choose weights and points; test queries serve the figures below and choose nothing. "
        "All figures are percentages; every sentence is made from the figures.",
    )


def _shown(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def command_line() -> str:
    """The command as it was typed."""
    return " ".join(["incdsi", *sys.argv[1:]])
