"""tune and train."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incdsi.cli.application import app, stopping
from incdsi.cli.looking import quality_table
from incdsi.cli.opening import open_folder, stored_settings
from incdsi.cli.options import AsJson, IndexPath, QueryFile, Quiet, Tuning
from incdsi.cli.output import count, emit, gained, note, sentences, show, table
from incdsi.cli.progress import progress
from incdsi.errors import EncoderMismatch, InvalidInput, MissingExtra
from incdsi.progress import Progress

if TYPE_CHECKING:
    from incdsi.documents import Document
    from incdsi.index import Index
    from incdsi.text.encoders.torch_encoder import TorchEncoder
    from incdsi.training.model import TrainedModel
    from incdsi.training.settings import FinetuneSettings

Texts = dict[str, list[str]]


@app.command()
def tune(index: IndexPath, tuning: Tuning = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Choose weights and fusion by the held-out queries.

    All documents are then placed by them; what was reached before and after is shown. With --tuning or
    --no-tuning nothing is chosen now: the index is told whether to do so by itself.

    \b
    Examples:
      incdsi tune --index shop
      incdsi tune --index shop --no-tuning
    """
    if tuning is not None:
        with open_folder(index) as opened:
            opened.set_tuning(tuning)
        emit({"tuning": tuning}) if as_json else show(f"{index} {'tunes' if tuning else 'does not tune'} itself")
        return
    with open_folder(index) as opened, progress("tuning", hidden=as_json or quiet) as report:
        before = opened.last_tuning
        with stopping(lambda: f"stopped; the index is {'as it was' if opened.last_tuning == before else 'tuned'}"):
            result = opened.tune(report)
    if as_json:
        emit(result)
    else:
        show("before", quality_table(result.before), "", "after", quality_table(result.after), "", gained(result))


@app.command()
def train(
    index: IndexPath,
    queries: QueryFile = None,
    encoder: Annotated[
        str | None,
        typer.Option("--encoder", metavar="NAME", help="Model to adapt, when it is not the default one."),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="At most so many; the best is kept.")] = 3,
    frozen_epochs: Annotated[
        int, typer.Option("--frozen-epochs", min=0, help="Before them, of the document vectors alone.")
    ] = 8,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Queries a step.")] = 128,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="The encoder's.")] = 2e-5,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Order of the queries.")] = 0,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save", metavar="FOLDER", help="Also keep the adapted model, to train it further.", show_default=False
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Adapt the encoder to the index's queries, and swap it in.

    This is stage 1 of the paper; searches go on meanwhile. Queries of --queries are first
    stored with their documents. Needs the extra `train`, and a GPU or
    patience. After Ctrl-C the same command goes on where it stopped.

    \b
    Examples:
      incdsi train --index shop --queries log.jsonl
      incdsi train --index shop --epochs 5 --save models/shop
      incdsi train --index shop --encoder models/shop
    """
    from incdsi.training.settings import FinetuneSettings

    hidden = as_json or quiet
    stage1 = _stage1()
    if queries is not None:
        with open_folder(index) as opened, progress("storing queries", hidden=hidden) as report:
            _store_queries(opened, queries, report)
    base = _base(encoder, index)
    settings = FinetuneSettings(
        epochs=epochs, frozen_epochs=frozen_epochs, batch_size=batch_size, learning_rate=learning_rate, seed=seed
    )
    checkpoint = index.resolve().with_name(f"{index.resolve().name}.training")
    with progress("training", hidden=hidden) as report:
        model = _trained(stage1, index, base, settings, checkpoint, report)
    if save is not None:
        _learned(model).save(save)
    adopted = model.encoder_fingerprint != stored_settings(index).fingerprint
    if adopted:
        with (
            open_folder(index) as opened,
            progress("swapping in", hidden=hidden) as report,
            stopping(lambda: _stopped_swapping(index, model)),
        ):
            opened.adopt(model.encoder, report)
    shutil.rmtree(checkpoint, ignore_errors=True)
    _tell(model, adopted, as_json=as_json)


def _stage1() -> Any:
    """The training room, or the sentence that says what to install."""
    try:
        from incdsi.training import stage1
    except MissingExtra:
        raise
    except ImportError as error:
        raise MissingExtra(f"training needs {error.name}; install it with: pip install 'incdsi[train]'") from error
    return stage1


def _base(name: str | None, path: Path) -> TorchEncoder:
    """The model to adapt: the one that is named, else the default one if the index uses it."""
    from incdsi.text.encoders.fetch import DEFAULT
    from incdsi.text.encoders.locate import load_torch_encoder

    encoder = load_torch_encoder(name)
    if name is None and encoder.fingerprint != stored_settings(path).fingerprint:
        raise EncoderMismatch(f"{path} does not use {DEFAULT}; name the model to adapt with --encoder")
    return encoder


def _store_queries(index: Index, source: str, report: Progress) -> None:
    from incdsi.readers import group_queries, read_queries

    problems: list[str] = []
    found = group_queries(
        read_queries(source, on_error=lambda error: problems.append(str(error))),
        index,
        on_error=lambda error: problems.append(str(error)),
    )
    if problems:
        raise InvalidInput(f"{sentences(problems, 'like these')}\nnothing was stored or trained; fix this first")
    stored = 0

    def reported(done: int, total: int) -> None:
        nonlocal stored
        stored = max(stored, min(done, len(found)))  # when the index tunes itself, all are in
        report(done, total)

    with stopping(lambda: f"stopped; queries of at least {count(stored)} are stored; run the same command to go on"):
        index.attach(found, progress=reported)


def _trained(
    stage1: Any, path: Path, base: TorchEncoder, settings: FinetuneSettings, checkpoint: Path, report: Progress
) -> TrainedModel:
    documents, queries, natural, held_out = _pairs(path)
    model: TrainedModel = stage1.train(
        documents,
        queries,
        encoder=base,
        mode="finetune",
        settings=settings,
        validation=held_out or None,
        adapt_to=natural or None,
        checkpoint=checkpoint,
        progress=report,
    )
    return model


def _pairs(path: Path) -> tuple[list[Document], Texts, set[str], Texts]:
    """All documents in the order of their rows, the queries to train on and the natural ones among them, and the
    held-out ones to choose by."""
    from incdsi.store import Store

    with Store.open(path, writer=False) as store:
        records = sorted(store.changes(0).upserts, key=lambda record: record.row)
    queries = {one.document.id: [query.text for query in one.queries if not query.held_out] for one in records}
    held_out = {one.document.id: [query.text for query in one.queries if query.held_out] for one in records}
    natural = {query.text for one in records for query in one.queries if not (query.held_out or query.generated)}
    return [one.document for one in records], queries, natural, {id: texts for id, texts in held_out.items() if texts}


def _stopped_swapping(path: Path, model: TrainedModel) -> str:
    if stored_settings(path).fingerprint == model.encoder_fingerprint:
        return "stopped; the adapted encoder is swapped in"
    return "stopped; the adapted encoder is not swapped in; run the same command to go on"


def _learned(model: TrainedModel) -> TorchEncoder:
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    assert isinstance(model.encoder, TorchEncoder)
    return model.encoder


def _tell(model: TrainedModel, adopted: bool, *, as_json: bool) -> None:
    if as_json:
        fingerprint = model.encoder_fingerprint
        emit({"adopted": adopted, "encoder": fingerprint, "best_epoch": model.best_epoch, "epochs": model.epochs})
        return
    rows = [
        (
            f"{epoch.number}{' (kept)' if epoch.number == model.best_epoch else ''}",
            "-" if epoch.loss is None else f"{epoch.loss:.4f}",
            "-" if epoch.quality is None else f"{epoch.quality.hits_at_1:.1f}",
            "-" if epoch.quality is None else f"{epoch.quality.mrr_at_10:.1f}",
        )
        for epoch in model.epochs
    ]
    show(table(("epoch", "loss", "H@1 %", "MRR@10 %"), rows))
    show("the adapted encoder is swapped in" if adopted else "no epoch was better than the start: nothing changed")
    note("more queries may help", quiet=adopted)
