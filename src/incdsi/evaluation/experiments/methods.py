"""Every method of the study by name, made ready for the study's settings."""

from __future__ import annotations

from collections.abc import Callable

from incdsi.baselines.classification import DSIDPR, Retraining
from incdsi.baselines.dpr import DPR, DPRSettings
from incdsi.baselines.lexical import BM25
from incdsi.baselines.protocol import Method
from incdsi.baselines.scratch import DSIScratch
from incdsi.baselines.vectors import Dense
from incdsi.evaluation.experiments.incremental import Incremental
from incdsi.evaluation.experiments.study import Study
from incdsi.evaluation.experiments.tasks import Progress
from incdsi.evaluation.experiments.tuned import tuned
from incdsi.evaluation.streams import Form, Solver
from incdsi.hyperparameters import Hyperparameters
from incdsi.text.encoders.locate import HUB_NAME, installed_model
from incdsi.text.encoders.torch_encoder import TorchEncoder
from incdsi.training.settings import FinetuneSettings, Start

GENERAL, PAPER, PAPER_SLOW = "general", "paper", "paper (L-BFGS)"
RETRAINING = "retraining"
FORMS: dict[str, Form] = {GENERAL: "general", PAPER: "paper", PAPER_SLOW: "paper"}
LONG_NAMES = {
    GENERAL: "IncDSI, general form",
    PAPER: "IncDSI, paper's form",
    PAPER_SLOW: "IncDSI, paper's form and solver",
    RETRAINING: "full retraining",
    "dense": "dense",
}


def named(method: str) -> str:
    """The name tables show."""
    return LONG_NAMES.get(method, method)


def incremental(
    study: Study,
    name: str,
    progress: Progress | None = None,
    *,
    how: Hyperparameters | None = None,
    start: Start = "text",
) -> Incremental:
    """IncDSI from the initial model, with tuned weights where none are given."""
    form = FORMS[name]
    solver: Solver = "lbfgs" if name == PAPER_SLOW else "ours"
    return Incremental(name, how or tuned(study, form), study.state(form, start), solver=solver, progress=progress)


def base_encoder(study: Study) -> TorchEncoder:
    """The encoder that finetuning starts from: the one the collection was embedded with."""
    if isinstance(study.data.encoder, TorchEncoder):
        return study.data.encoder
    return TorchEncoder.load(study.settings.encoder or installed_model() or HUB_NAME)


def dpr(study: Study, progress: Progress) -> DPR:
    """The dual encoder with the study's budget."""
    chosen = study.settings
    budget = DPRSettings(
        epochs=chosen.dpr_epochs, queries=chosen.dpr_queries, towers=chosen.dpr_towers, seed=chosen.seed
    )
    return DPR(base_encoder(study), budget, progress=progress)


def scratch(study: Study, progress: Progress) -> DSIScratch:
    """DSI-Scratch with the study's budget."""
    chosen = study.settings
    settings = FinetuneSettings(epochs=chosen.scratch_epochs, seed=chosen.seed)
    rows = study.initial_vectors()
    return DSIScratch(base_encoder(study), settings, most=chosen.scratch_queries, initial=rows, progress=progress)


def makers(study: Study) -> dict[str, Callable[[Progress], Method]]:
    """All methods of the main table in its order; finetuned ones where the study has them."""
    made: dict[str, Callable[[Progress], Method]] = {
        "BM25": lambda _: BM25(),
        "dense": lambda _: Dense(),
        "DPR": lambda progress: dpr(study, progress),
        "DSI-DPR": lambda progress: DSIDPR(
            study.frozen, epochs=study.settings.further_epochs, initial=study.initial_vectors(), progress=progress
        ),
        "DSI-Scratch": lambda progress: scratch(study, progress),
        RETRAINING: lambda progress: Retraining(study.frozen, initial=study.initial_vectors(), progress=progress),
        PAPER_SLOW: lambda progress: incremental(study, PAPER_SLOW, progress),
        PAPER: lambda progress: incremental(study, PAPER, progress),
        GENERAL: lambda progress: incremental(study, GENERAL, progress),
    }
    if not study.settings.finetuned:
        del made["DPR"], made["DSI-Scratch"]
    return made
