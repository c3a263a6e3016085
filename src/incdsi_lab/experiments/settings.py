"""How large a study is: everything its figures depend on beside the data, checked when made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

from incdsi.errors import InvalidHyperparameters
from incdsi_lab.tuning import Optimiser

if TYPE_CHECKING:  # brings torch, which a refusal need not wait for
    from incdsi_lab.baselines.dpr import Towers


@dataclass(frozen=True, slots=True, kw_only=True)
class StudySettings:
    """The size of every experiment.

    `documents` is how many to draw from the collection (0: all). `encoder` names a model (empty: the default one);
    it is finetuned on the initial documents for `encoder_epochs` first, as in the paper (0: it stays as it is).
    `additions` are the numbers of new documents the main table stops at, beside all of them. `orders` random
    orders make the curves. `trials` tune each form, by `optimiser`.
    `finetuned` says whether DPR and DSI-Scratch run; DPR learns for `dpr_epochs` on at most `dpr_queries`,
    DSI-Scratch for `scratch_epochs` on at most `scratch_queries` (in the long stream: for all its additions
    together). `slow_documents` bounds what the paper's solver is given. `marks` are the shares of all documents at
    which the long stream is judged.
    """

    documents: int = 0
    encoder: str = ""
    encoder_epochs: int = 0
    seed: int = 0
    additions: tuple[int, ...] = (10, 100)
    orders: int = 5
    trials: int = 30
    optimiser: Optimiser = "gp"
    frozen_epochs: int = 8
    further_epochs: int = 2
    finetuned: bool = True
    dpr_epochs: int = 1
    dpr_queries: int = 8_000
    dpr_towers: Towers = "query"
    scratch_epochs: int = 2
    scratch_queries: int = 8_000
    slow_documents: int = 100
    hinge_documents: int = 100
    query_counts: tuple[int, ...] = (1, 2, 3, 5)
    betas: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0)
    marks: tuple[float, ...] = (0.1, 0.2, 0.5, 1.0)

    def __post_init__(self) -> None:
        for name in ("orders", "trials", "frozen_epochs", "further_epochs", "slow_documents", "hinge_documents"):
            if getattr(self, name) < 1:
                raise InvalidHyperparameters(f"{name} must be at least 1, not {getattr(self, name)}")
        if min(self.documents, self.seed, self.encoder_epochs) < 0:
            raise InvalidHyperparameters("documents, seed and encoder_epochs must not be negative")
        if self.optimiser not in get_args(Optimiser):
            raise InvalidHyperparameters(
                f"the optimiser must be {' or '.join(get_args(Optimiser))}, not {self.optimiser!r}"
            )
        if not self.marks or min(self.marks) <= 0 or max(self.marks) != 1.0 or list(self.marks) != sorted(self.marks):
            raise InvalidHyperparameters(f"marks must rise to 1; these are {self.marks}")


# Sized for an hour on two cores, embedding included: `--documents 0` takes all and about half as long again.
SQUAD = StudySettings(
    documents=7_500,
    trials=20,
    dpr_queries=4_000,
    scratch_queries=2_000,
    slow_documents=40,
    hinge_documents=40,
    marks=(0.1, 0.3, 1.0),
)
# Most documents there have generated queries only, and the encoder has seen the natural ones.
NQ_PASSAGES = StudySettings(documents=7_500, finetuned=False, trials=20, marks=(0.1, 0.3, 1.0))
# The paper's own sets: stage 1 adapts the encoder, more additions, and no bound on what the paper's solver is given.
PAPER = StudySettings(
    encoder_epochs=20,
    additions=(10, 100, 1_000, 10_000),
    orders=10,
    trials=50,
    dpr_queries=10**9,
    dpr_epochs=5,
    dpr_towers="both",
    scratch_epochs=10,
    scratch_queries=10**9,
    slow_documents=10**9,
)
# Two minutes on two busy cores: the same code on a few hundred documents.
SMALL = StudySettings(
    documents=300,
    additions=(10,),
    orders=2,
    trials=6,
    frozen_epochs=2,
    further_epochs=1,
    dpr_queries=128,
    scratch_epochs=1,
    scratch_queries=64,
    slow_documents=40,
    hinge_documents=8,
    query_counts=(1, 3),
    betas=(1.0, 5.0),
    marks=(0.1, 0.5, 1.0),
)
PRESETS = {"squad": SQUAD, "nq-passages": NQ_PASSAGES, "nq320k": PAPER, "msmarco": PAPER}
