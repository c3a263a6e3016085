"""No harm: safe and tuned weights beside dense search, which an index should never fall below."""

from __future__ import annotations

from incdsi_lab.experiments import long_stream, main_table, product
from incdsi_lab.experiments.comparing import against, asked, interval, unique
from incdsi_lab.experiments.judging import hits1
from incdsi_lab.experiments.methods import GENERAL, GENERAL_SAFE, RETRAINING
from incdsi_lab.experiments.study import Study
from incdsi_lab.experiments.tasks import Task
from incdsi_lab.report.sections import Aim, Section
from incdsi_lab.report.tables import Table

NAME, TITLE = "noharm", "No harm"
SAFELY, TUNED = (f"general form, {how}" for how in ("safe weights", "tuned by the rule"))
DEFAULT = "incdsi itself, learned"  # trained first where documents are added, grown from nothing where they are grown
ADDED = {"dense": "dense", SAFELY: GENERAL_SAFE, TUNED: GENERAL, DEFAULT: "product, trained, learned"}
GROWN = {
    "dense": "dense",
    SAFELY: "general, safe weights, from nothing",
    TUNED: "general, from nothing",
    DEFAULT: "product, learned",
}


def tasks(study: Study) -> list[Task]:
    """Pieces of the main table and the long stream."""
    last = study.additions[-1]
    grown = {f"{long_stream.NAME}/{name}" for name in ("dense", "product", GROWN[SAFELY], GROWN[TUNED])}
    shared = ("initial/", "tuned/", f"main/{RETRAINING}")
    needed = [task for task in long_stream.tasks(study) if task.name in grown or task.name.startswith(shared)]
    added = [main_table.task_of(study, name, last) for name in ("dense", GENERAL_SAFE, GENERAL)]
    return unique([*needed, *added, *product.tasks(study)])


def section(study: Study) -> Section:
    """Added to the initial model, and grown from nothing."""
    last = study.additions[-1]
    itself = product.rows(study)
    added = {
        name: itself[piece] if piece in itself else study.piece(main_table.name_of(piece, last))
        for name, piece in ADDED.items()
    }
    grown = {name: long_stream.final(study, piece) for name, piece in GROWN.items()}
    rows = tuple(
        (
            name,
            interval(added[name]["ranks"]["old"]),
            interval(added[name]["ranks"]["new"]),
            "-" if name == "dense" else against(added["dense"], added[name], "new"),
            interval(grown.get(name, "")),
            "-" if name == "dense" or name not in grown else _difference(grown["dense"], grown[name]),
        )
        for name in ADDED
    )
    columns = ("method", "H@1 old", "H@1 new", "new vs dense", "H@1, all grown from nothing", "vs dense")
    caption = (
        f"Safe and tuned weights beside dense search on {study.data.collection.name} "
        f"({asked(added['dense']['ranks'])}; {len(grown['dense']):,} of all documents)"
    )
    return Section(
        name=NAME,
        title=TITLE,
        paragraphs=(
            "The new documents added to the trained initial model, and the whole collection grown from nothing. Stars "
            "as in the main table, against dense search.",
        ),
        tables=(Table(name="noharm", caption=caption, columns=columns, rows=rows),),
        aims=tuple(
            _aim(f"{name}, {how}", ranks[name], ranks["dense"])
            for how, ranks in (
                ("grown from nothing", grown),
                (
                    "new documents added to the trained model",
                    {one: piece["ranks"]["new"] for one, piece in added.items()},
                ),
            )
            for name in ranks
            if name != "dense"
        ),
    )


def _difference(dense: str, other: str) -> str:
    return against({"ranks": {"all": dense}}, {"ranks": {"all": other}}, "all")


def _aim(what: str, ranks: str, dense: str) -> Aim:
    return Aim(
        text=f"No harm: {what}, not below dense search",
        found=f"Found {hits1(ranks):.1f} % H@1 against dense {hits1(dense):.1f}.",
        reached=hits1(ranks) >= hits1(dense),
    )
