"""Every method of the study by name, made ready for the study's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from incdsi.engine.settings import Method
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.rehearsal import level_of, safe_at, scale_of
from incdsi.progress import Progress
from incdsi.records import Record, StoredQuery
from incdsi.text.encoders.locate import load_torch_encoder
from incdsi.training.settings import FinetuneSettings, Start
from incdsi_lab.anchors import anchors
from incdsi_lab.baselines import protocol
from incdsi_lab.baselines.classification import DSIDPR, Retraining
from incdsi_lab.baselines.lexical import BM25
from incdsi_lab.baselines.protocol import Floats
from incdsi_lab.baselines.vectors import Dense
from incdsi_lab.experiments import product
from incdsi_lab.experiments.incremental import Incremental
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tuned import tuned
from incdsi_lab.streams import NAMELESS, Solver

if TYPE_CHECKING:  # finetuning brings sentence-transformers: seconds, where most studies have no use for it
    from incdsi.text.encoders.torch_encoder import TorchEncoder
    from incdsi_lab.baselines.dpr import DPR
    from incdsi_lab.baselines.scratch import DSIScratch

GENERAL, GENERAL_SAFE, PAPER, PAPER_SLOW = "general", "general (safe)", "paper", "paper (L-BFGS)"
RETRAINING = "retraining"
FINETUNED = ("DPR", "DSI-Scratch")  # minutes each on a machine without a GPU
FORM_OF: dict[str, Method] = {
    GENERAL: "general",
    GENERAL_SAFE: "general",
    PAPER: "paper",
    PAPER_SLOW: "paper",
}
ANCHORS = {anchor.name: type(anchor) for anchor in anchors() if anchor.name != "dense"}
LONG_NAMES = {
    GENERAL: "IncDSI, general form",
    GENERAL_SAFE: "IncDSI, general form, safe weights",
    PAPER: "IncDSI, paper's form",
    PAPER_SLOW: "IncDSI, paper's form and solver",
    RETRAINING: "full retraining",
    "BM25": "BM25 (bm25s)",
    "words": "BM25 (the index's)",
    "words + questions": "BM25 over text and known questions",
    "nearest question": "nearest known question",
    **product.ROWS,
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
    form = FORM_OF[name]
    solver: Solver = "lbfgs" if name == PAPER_SLOW else "ours"
    chosen = how or weights(study, name)
    return Incremental(name, chosen, study.state(form, start), solver=solver, progress=progress)


def weights(study: Study, name: str) -> Hyperparameters:
    """What a method has: safe weights in the unit of the trained vectors, or tuned ones."""
    if name == GENERAL_SAFE:
        return _safe_among(study.initial_vectors(), study.initial)
    return tuned(study, FORM_OF[name])


def _safe_among(vectors: Floats, initial: protocol.Part) -> Hyperparameters:
    """The safe weights as the product gives them to newcomers among vectors that were trained."""
    known = initial.queries
    queries: list[list[StoredQuery]] = [[] for _ in vectors]
    for owner, embedding, generated in zip(known.owners, known.embeddings, known.generated, strict=True):
        queries[owner].append(StoredQuery(text="", embedding=embedding, generated=bool(generated)))
    records = [
        Record(document=NAMELESS, vector=vector, anchor=text, queries=tuple(some))
        for vector, text, some in zip(vectors, initial.embeddings, queries, strict=True)
    ]
    return safe_at(scale_of(records), level_of(records))


def base_encoder(study: Study) -> TorchEncoder:
    """The encoder that finetuning starts from: the one the collection was embedded with."""
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    if isinstance(study.data.encoder, TorchEncoder):
        return study.data.encoder
    return load_torch_encoder(study.settings.encoder)


def dpr(study: Study, progress: Progress) -> DPR:
    """The dual encoder with the study's budget."""
    from incdsi_lab.baselines.dpr import DPR, DPRSettings

    chosen = study.settings
    budget = DPRSettings(
        epochs=chosen.dpr_epochs, queries=chosen.dpr_queries, towers=chosen.dpr_towers, seed=chosen.seed
    )
    # Both towers begin where the encoder came from; the query tower alone must fit the documents' embeddings.
    encoder = load_torch_encoder(chosen.encoder) if chosen.dpr_towers == "both" else base_encoder(study)
    return DPR(encoder, budget, progress=progress)


def scratch(study: Study, initial: Floats, added: int, progress: Progress) -> DSIScratch:
    """DSI-Scratch from these rows with the study's budget, shared by all documents that will be added."""
    from incdsi_lab.baselines.scratch import DSIScratch

    chosen = study.settings
    settings = FinetuneSettings(epochs=chosen.scratch_epochs, seed=chosen.seed)
    each = chosen.scratch_queries / max(1, added)
    return DSIScratch(base_encoder(study), settings, per_document=each, initial=initial, progress=progress)


def dsi_dpr(study: Study, initial: Floats, progress: Progress) -> DSIDPR:
    """DSI-DPR from these rows with the study's budget."""
    return DSIDPR(study.frozen, epochs=study.settings.further_epochs, initial=initial, progress=progress)


def finetuning_seconds(study: Study, method: str, *, initial: int, added: int, judged: int) -> float:
    """Roughly how long DPR or DSI-Scratch takes here to learn, and to embed `judged` queries.

    A query is learned from in 20 to 25 ms and embedded in 6.
    """
    chosen = study.settings
    if method == "DPR":
        learned = min(chosen.dpr_queries, 3.3 * initial) * chosen.dpr_epochs
        return learned / 40 + judged / 170
    learned = min(chosen.scratch_queries, 16 * added) * chosen.scratch_epochs
    return 10 + learned / 50 + judged / 170


def makers(study: Study) -> dict[str, Callable[[Progress], protocol.Method]]:
    """All methods of the main table in its order; finetuned ones where the study has them."""
    made: dict[str, Callable[[Progress], protocol.Method]] = {
        "dense": lambda _: Dense(),
        "BM25": lambda _: BM25(),
        **{name: _without_progress(anchor) for name, anchor in ANCHORS.items()},
        "DPR": lambda progress: dpr(study, progress),
        "DSI-DPR": lambda progress: dsi_dpr(study, study.initial_vectors(), progress),
        "DSI-Scratch": lambda progress: scratch(study, study.initial_vectors(), len(study.split.new), progress),
        RETRAINING: lambda progress: Retraining(study.frozen, initial=study.initial_vectors(), progress=progress),
        PAPER_SLOW: lambda progress: incremental(study, PAPER_SLOW, progress),
        PAPER: lambda progress: incremental(study, PAPER, progress),
        GENERAL_SAFE: lambda progress: incremental(study, GENERAL_SAFE, progress),
        GENERAL: lambda progress: incremental(study, GENERAL, progress),
    }
    return {name: make for name, make in made.items() if study.settings.finetuned or name not in FINETUNED}


def _without_progress(made: Callable[[], protocol.Method]) -> Callable[[Progress], protocol.Method]:
    return lambda _: made()
