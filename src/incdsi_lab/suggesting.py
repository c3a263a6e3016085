"""Where to look next: Bayesian optimisers behind one function, and the journal of what was tried.

A suggestion depends on the finished trials and the seed alone, so a killed search resumes as if it had
never stopped.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from incdsi.errors import InvalidFile, MissingExtra

Values = Mapping[str, float]
STUDY = "incdsi"
TARGET = "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """The range of a number; `log` when its order of magnitude is what matters."""

    low: float
    high: float
    log: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A trial: what was tried, the target it reached, and what else is known about it."""

    values: Values
    target: float
    facts: Mapping[str, float]


Suggest = Callable[[Mapping[str, Range], Sequence[Finished], int], dict[str, float]]
"""From ranges, finished trials and a seed to the values to try next; the target is maximised."""


def suggest_gp(ranges: Mapping[str, Range], finished: Sequence[Finished], seed: int) -> dict[str, float]:
    """By Optuna's Gaussian process; at random for the first ten."""
    optuna = _optuna()
    with _silent(optuna):
        sampler = optuna.samplers.GPSampler(seed=seed + len(finished))
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.add_trials([_frozen(optuna, ranges, trial) for trial in finished])
        asked = study.ask(_distributions(optuna, ranges))
    return {name: float(asked.params[name]) for name in ranges}


def suggest_ax(ranges: Mapping[str, Range], finished: Sequence[Finished], seed: int) -> dict[str, float]:
    """By Ax, as the paper's authors did (extra `paper`); by Sobol's sequence for the first five."""
    require_ax()
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig
    from ax.utils.common.logger import set_ax_logger_levels

    set_ax_logger_levels(logging.WARNING)
    client = Client(random_seed=seed + len(finished))
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(
                name=name,
                parameter_type="float",
                bounds=(some.low, some.high),
                scaling="log" if some.log else "linear",
            )
            for name, some in ranges.items()
        ]
    )
    client.configure_optimization(objective=TARGET)
    # With the centre as a first step of its own, a client that is given past trials never gets past Sobol's.
    client.configure_generation_strategy(
        initialize_with_center=False, initialization_budget=5, initialization_random_seed=seed + len(finished)
    )
    for trial in finished:
        number = client.attach_trial(parameters=dict(trial.values))
        client.complete_trial(trial_index=number, raw_data={TARGET: trial.target})
    (values,) = client.get_next_trials(max_trials=1).values()
    return {name: float(values[name]) for name in ranges}


def require_ax() -> None:
    """MissingExtra without Ax."""
    if importlib.util.find_spec("ax") is None:
        raise MissingExtra("the authors' own optimiser needs Ax; install it with: pip install 'incdsi[paper]'")


class Journal:
    """The finished trials of one search in an Optuna journal file; without a path, in memory only."""

    def __init__(self, path: Path | None, about: Mapping[str, Any], ranges: Mapping[str, Range]) -> None:
        """Opens the file, created if missing; InvalidFile when it is the journal of another search."""
        self._optuna = _optuna()
        self._ranges = ranges
        with _silent(self._optuna):
            self._study = self._optuna.create_study(
                study_name=STUDY, storage=self._storage(path), direction="maximize", load_if_exists=True
            )
            wanted = json.loads(json.dumps(dict(about)))
            found = self._study.user_attrs.get("about", wanted)
            if found != wanted:
                differing = sorted(name for name in {*wanted, *found} if wanted.get(name) != found.get(name))
                raise InvalidFile(
                    f"this is the journal of a search with another {', '.join(differing)}; "
                    "name another file, or remove this one",
                    path=path,
                )
            self._study.set_user_attr("about", wanted)

    @property
    def finished(self) -> list[Finished]:
        """The trials in the order in which they were made."""
        return [
            Finished(values=trial.params, target=trial.value, facts=trial.user_attrs)
            for trial in self._study.get_trials(deepcopy=False)
        ]

    def add(self, trial: Finished) -> None:
        """Keep a finished trial."""
        with _silent(self._optuna):
            self._study.add_trial(_frozen(self._optuna, self._ranges, trial))

    def _storage(self, path: Path | None) -> Any:
        if path is None:
            return None
        path.parent.mkdir(parents=True, exist_ok=True)
        _mend(path)
        storages = self._optuna.storages
        return storages.JournalStorage(storages.journal.JournalFileBackend(str(path)))


def _mend(path: Path) -> None:
    """Cut off a last line that a crash left unfinished; a file that is not a journal is refused and left alone."""
    if not path.exists():
        return
    content = path.read_bytes()
    try:
        known = not content or "op_code" in json.loads(content.partition(b"\n")[0])
    except (ValueError, TypeError):
        known = False
    if not known:
        raise InvalidFile("not a journal of trials; name another file", path=path, line=1)
    os.truncate(path, content.rfind(b"\n") + 1)


def _frozen(optuna: Any, ranges: Mapping[str, Range], trial: Finished) -> Any:
    return optuna.trial.create_trial(
        params=dict(trial.values),
        distributions=_distributions(optuna, ranges),
        value=trial.target,
        user_attrs=dict(trial.facts),
    )


def _distributions(optuna: Any, ranges: Mapping[str, Range]) -> dict[str, Any]:
    return {
        name: optuna.distributions.FloatDistribution(some.low, some.high, log=some.log) for name, some in ranges.items()
    }


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise MissingExtra("tuning needs optuna; install it with: pip install 'incdsi[eval]'") from error
    return optuna


@contextlib.contextmanager
def _silent(optuna: Any) -> Iterator[None]:
    """Optuna reports every study and trial on stderr; a library should not print."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
