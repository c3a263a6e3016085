"""`incdsi repro`: the paper's study at one command, which the laboratory adds to incdsi's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from incdsi.cli.application import app
from incdsi.cli.options import AsJson, Quiet
from incdsi.cli.output import emit, note, show, table
from incdsi.cli.progress import progress
from incdsi.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from incdsi.text.encoders import Encoder
    from incdsi_lab.embedded import Embedded
    from incdsi_lab.experiments.settings import StudySettings
    from incdsi_lab.experiments.study import Study
    from incdsi_lab.splits import Split

Name = Annotated[
    str,
    typer.Argument(
        metavar="DATASET",
        help="squad, nq-passages, nq320k, msmarco, irds:NAME (ir_datasets), or a folder.",
    ),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this experiment; repeatable.", show_default=False),
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="FOLDER", help="Where the report goes; default report-DATASET.")
]
Data = Annotated[
    Path | None, typer.Option("--data", metavar="FOLDER", help="Where the collection is.", show_default=False)
]
Seeds = Annotated[
    str | None,
    typer.Option(
        "--seeds",
        metavar="1,2,3",
        help="Several seeds, each in a folder of its own, and one report of their spread.",
        show_default=False,
    ),
]
Orders = Annotated[int | None, typer.Option("--orders", min=1, help="Random orders of the curves.", show_default=False)]
Finetuned = Annotated[
    bool | None,
    typer.Option("--finetuned/--frozen", help="With or without the finetuned baselines.", show_default=False),
]
Tuner = Annotated[
    str | None,
    typer.Option(
        "--optimiser",
        metavar="NAME",
        help="gp (Optuna's), or ax as the authors had (extra `paper`).",
        show_default=False,
    ),
]
EncoderEpochs = Annotated[
    int | None,
    typer.Option(
        "--encoder-epochs",
        min=0,
        help="Finetune the encoder on the initial documents first; 0 keeps it frozen.",
        show_default=False,
    ),
]


@app.command()
def repro(
    dataset: Name,
    only: Only = None,
    documents: Annotated[
        int | None,
        typer.Option("--documents", min=0, help="Draw this many; 0 takes all.", show_default=False),
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="A few hundred documents: about two minutes.")] = False,
    out: Out = None,
    data: Data = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="For the split and everything drawn at random.")] = 0,
    seeds: Seeds = None,
    orders: Orders = None,
    trials: Annotated[
        int | None, typer.Option("--trials", min=1, help="Tuning trials per form.", show_default=False)
    ] = None,
    optimiser: Tuner = None,
    finetuned: Finetuned = None,
    encoder: Annotated[
        str | None, typer.Option("--encoder", metavar="NAME", help="Another model.", show_default=False)
    ] = None,
    encoder_epochs: EncoderEpochs = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Reproduce the paper's study on a dataset, and write a report.

    Splits, trains, tunes, streams, and compares with every baseline. Every finished piece is kept
    in the output folder: after Ctrl-C the same command resumes where it stopped. Needs the extras
    `train` and `eval`.

    \b
    Examples:
      incdsi repro squad --out report
      incdsi repro nq-passages --only main --only frontier
      incdsi repro squad --small
      incdsi repro squad --seeds 1,2,3,4,5 --documents 2500 --only main --only product
      incdsi repro ./my-collection --orders 10 --json
      incdsi repro irds:beir/scifact --small
      incdsi repro squad --encoder-epochs 3 --optimiser ax
    """
    laboratory, datasets = _rooms()
    names = laboratory.chosen(only or [])
    given = {
        "documents": documents,
        "orders": orders,
        "trials": trials,
        "optimiser": optimiser,
        "finetuned": finetuned,
        "encoder": encoder,
        "encoder_epochs": encoder_epochs,
    }
    settings = _settings(datasets.settings_for(dataset), small, seed, given)
    folder = out or Path(f"report-{Path(dataset).name}{'-small' if small else ''}")
    asked = _Asked(laboratory, datasets, dataset, data, settings, names, hidden=as_json or quiet)
    last, seconds, page = asked.run(folder) if seeds is None else asked.run_several(_seeds(seeds), folder)
    _tell(last, seconds, page, as_json=as_json, quiet=quiet)


@dataclass(frozen=True)
class _Asked:
    """What to study and how; running it gives the last study, seconds by name, and the report."""

    laboratory: Any
    datasets: Any
    dataset: str
    data: Path | None
    settings: StudySettings
    names: Sequence[str]
    hidden: bool

    def run(self, folder: Path) -> tuple[Study, dict[str, float], Path]:
        study = self._study(self.settings, folder)
        with progress("studying", hidden=self.hidden) as report:
            command = self.laboratory.command_line()
            page = self.laboratory.run_study(study, self.names, command=command, progress=report)
        return study, self.laboratory.took(study, self.names), page

    def run_several(self, seeds: Sequence[int], folder: Path) -> tuple[Study, dict[str, float], Path]:
        """One study a seed, all new documents at once."""
        wholes: dict[str, Embedded] = {}
        studies = (
            self._study(
                replace(self.settings, seed=seed, additions=()),
                folder / f"seed-{seed}",
                draws=len(seeds),
                wholes=wholes,
            )
            for seed in seeds
        )
        with progress("studying", hidden=self.hidden) as report:
            command = self.laboratory.command_line()
            page, done = self.laboratory.run_studies(
                studies, folder, self.names, count=len(seeds), command=command, progress=report
            )
        took = {f"seed {one.settings.seed}": sum(self.laboratory.took(one, self.names).values()) for one in done}
        return done[-1], took, page

    def _study(self, settings: StudySettings, folder: Path, **drawing: Any) -> Study:
        from incdsi_lab.experiments.study import UNKNOWN, Study, facts
        from incdsi_lab.experiments.tasks import require_same
        from incdsi_lab.suggesting import require_ax

        dataset = self.datasets.read_dataset(self.dataset, self.data).sampled(settings.documents, settings.seed)
        split = dataset.split(settings.seed)
        self.datasets.require_texts(dataset)
        require_same(folder, facts(dataset.collection, split, settings), unknown=UNKNOWN)
        if settings.optimiser == "ax":
            require_ax()
        encoder, before = _encoder(dataset, split, settings, self.hidden)
        with progress("embedding", hidden=self.hidden) as report:
            embedded = self.datasets.embedded(dataset, encoder, report, **drawing)
        return Study(replace(embedded, seconds=before | embedded.seconds), split, settings, folder)


def _rooms() -> tuple[Any, Any]:
    """The laboratory, or one sentence on what to install."""
    try:
        from incdsi_lab.experiments import datasets, laboratory
    except MissingExtra:
        raise
    except ImportError as error:
        raise MissingExtra(
            f"the study needs {error.name}; install it with: pip install 'incdsi[train,eval]'"
        ) from error
    return laboratory, datasets


def _settings(preset: StudySettings, small: bool, seed: int, given: dict[str, Any]) -> StudySettings:
    from incdsi_lab.experiments.settings import SMALL

    told = {name: value for name, value in given.items() if value is not None}
    return replace(SMALL if small else preset, seed=seed, **told)


def _seeds(given: str) -> list[int]:
    try:
        seeds = list(dict.fromkeys(int(one) for one in given.split(",")))
    except ValueError:
        seeds = []
    if len(seeds) < 2 or min(seeds) < 0:
        raise InvalidInput(f"--seeds takes two or more whole numbers such as 1,2,3, not {given!r}")
    return seeds


def _encoder(dataset: Any, split: Split, settings: StudySettings, hidden: bool) -> tuple[Encoder, dict[str, float]]:
    """The encoder, and the seconds that stage 1 took if it finetuned it."""
    from incdsi.text.encoders import load_encoder
    from incdsi.text.encoders.locate import load_torch_encoder
    from incdsi_lab.experiments.adapting import adapted

    name = settings.encoder
    able = load_torch_encoder(name) if settings.encoder_epochs or (name and settings.finetuned) else None
    if able is None or not settings.encoder_epochs:
        return load_encoder(name or None), {}
    with progress("stage 1", hidden=hidden) as report:
        encoder, seconds = adapted(dataset, split, able, settings, progress=report)
    return encoder, {"stage 1": seconds}


def _tell(study: Study, seconds: dict[str, float], page: Path, *, as_json: bool, quiet: bool) -> None:
    if as_json:
        pieces = sorted(path.name for path in (study.pieces.folder / "pieces").glob("*.json"))
        emit({"report": str(page), "seconds": seconds, "pieces": pieces})
        return
    show(table(("experiment", "seconds"), [(name, f"{spent:,.0f}") for name, spent in seconds.items()]))
    show(f"the report is {page}")
    note("beside it: report.md, figures/, tables/, split/ and pieces/", quiet=quiet)
