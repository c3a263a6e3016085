"""What an index says about itself: counts, settings, quality on held-out queries, the last tuning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from incdsi.hyperparameters import Hyperparameters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """H@1, H@10 and MRR@10 in percent over `queries` queries."""

    hits_at_1: float
    hits_at_10: float
    mrr_at_10: float
    queries: int

    @classmethod
    def of(cls, ranks: NDArray[np.intp]) -> Self:
        """From the rank of each right document, counted from 1."""
        if len(ranks) == 0:
            return cls(hits_at_1=0.0, hits_at_10=0.0, mrr_at_10=0.0, queries=0)
        shares = (ranks <= 1).mean(), (ranks <= 10).mean(), ((ranks <= 10) / ranks).mean()
        h1, h10, mrr = (round(100 * float(share), 2) for share in shares)
        return cls(hits_at_1=h1, hits_at_10=h10, mrr_at_10=mrr, queries=len(ranks))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A candidate and what it reached on the held-out queries of the sample."""

    hyperparameters: Hyperparameters
    quality: Quality

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(
            hyperparameters=Hyperparameters.from_json(stored["hyperparameters"]), quality=Quality(**stored["quality"])
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Tuning:
    """What was chosen by `queries` held-out queries, and how well they were found before and after.

    `version` is that of the index it was chosen for; `before` and `after` are by way of searching; `trials`
    are what was tried, best first.
    """

    version: int
    queries: int
    hyperparameters: Hyperparameters
    lexical_weight: float
    nearest_share: float
    before: Mapping[str, Quality]
    after: Mapping[str, Quality]
    trials: tuple[Trial, ...]

    def __repr__(self) -> str:
        gains = (f"{mode} H@1 {old.hits_at_1} -> {self.after[mode].hits_at_1}" for mode, old in self.before.items())
        return f"Tuning({', '.join([f'{self.queries:,} questions at version {self.version:,}', *gains])})"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "trials": [asdict(trial) for trial in self.trials]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        return cls(
            version=stored["version"],
            queries=stored["queries"],
            hyperparameters=Hyperparameters.from_json(stored["hyperparameters"]),
            lexical_weight=stored["lexical_weight"],
            nearest_share=stored.get("nearest_share", 0.0),  # what tuned it before there was one
            before=_by_mode(stored["before"]),
            after=_by_mode(stored["after"]),
            trials=tuple(map(Trial.from_json, stored["trials"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Info:
    """Counts and settings; `quality` on the held-out queries, by way of searching.

    `unresolved` documents were placed beside one that has been deleted since. Where `vector_search` is not "exact", it
    names an approximate index, and a search may miss a document.
    """

    documents: int
    queries: int
    generated_queries: int
    held_out_queries: int
    preserve_rows: int
    unresolved: int
    dimension: int
    encoder: str
    language: str
    method: str
    hyperparameters: Hyperparameters
    lexical_weight: float
    nearest_share: float
    tuning: bool
    last_tuning: Tuning | None
    version: int
    quality: Mapping[str, Quality]
    vector_search: str = "exact"

    def __repr__(self) -> str:
        documents = f"{self.documents:,} document{'' if self.documents == 1 else 's'}"
        counts = f"{documents}, {self.queries:,} quer{'y' if self.queries == 1 else 'ies'}"
        quality = (f"{mode} H@1 {found.hits_at_1}" for mode, found in self.quality.items())
        return f"Info({', '.join([counts, f'version {self.version:,}', *quality])})"

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        """The inverse of `dataclasses.asdict`; unknown names are ignored."""
        own = {
            field.name: plain[field.name] for field in fields(cls) if field.name in plain or field.default is MISSING
        }
        own["hyperparameters"] = Hyperparameters.from_json(own["hyperparameters"])
        own["last_tuning"] = own["last_tuning"] and Tuning.from_json(own["last_tuning"])
        return cls(**{**own, "quality": _by_mode(own["quality"])})


def _by_mode(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Quality]:
    return {mode: Quality(**found) for mode, found in stored.items()}
