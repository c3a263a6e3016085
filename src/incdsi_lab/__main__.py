"""`incdsi-lab`: the collection that the study needs and we may not ship, and the study of a living index."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from incdsi.errors import IncDSIError
from incdsi_lab.data.location import ENVIRONMENT
from incdsi_lab.data.squad_plus import build

EXAMPLES = """examples:
  incdsi-lab data squad --data data
  incdsi-lab living squad --documents 1000 --orders 5 --out living
"""


def main() -> None:
    """What the script `incdsi-lab` runs."""
    parser = argparse.ArgumentParser(
        prog="incdsi-lab",
        description="Beside `incdsi repro`: its data, and the study of a living index.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    data = commands.add_parser("data", help="build a collection from public files")
    data.add_argument("name", choices=["squad"], help="squad: SQuAD 1.1 dev and SQuADShifts; downloads 360 MB by pip")
    data.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ.get(ENVIRONMENT, "data")),
        metavar="FOLDER",
        help="where squad_plus/ goes; default $INCDSI_DATA, or data",
    )
    data.set_defaults(run=_build)
    living = commands.add_parser(
        "living",
        help="indexes that documents come to, change in and leave; writes a report",
        description="Streams with deletes, updates, teaching, wrong questions. After Ctrl-C the same command resumes.",
    )
    living.add_argument(
        "name", metavar="DATASET", help="squad, nq-passages, irds:NAME (ir_datasets), or a collection's folder"
    )
    living.add_argument("--documents", type=_counted, default=1_000, help="in each index; default 1000")
    living.add_argument("--orders", type=_counted, default=5, help="each draws its own documents; default 5")
    living.add_argument("--seed", type=int, default=0, help="for everything drawn at random; default 0")
    living.add_argument("--only", action="append", metavar="LIFE", help="only this one, or growth; repeatable")
    living.add_argument("--data", type=Path, metavar="FOLDER", help="where the collection is")
    living.add_argument("--out", type=Path, default=Path("living"), metavar="FOLDER", help="default living")
    living.set_defaults(run=_live)
    given = parser.parse_args()
    try:
        given.run(given)
    except IncDSIError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("stopped; what is finished is kept, and the same command resumes")


def _counted(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, found {text!r}")
    return int(text)


def _build(given: argparse.Namespace) -> None:
    folder = given.data / "squad_plus"
    collection = build(folder)
    print(f"{folder}: {len(collection.documents):,} documents, {len(collection.queries):,} queries")
    print(f"next: incdsi repro squad --data {folder.parent}")


def _live(given: argparse.Namespace) -> None:
    from incdsi.cli.progress import progress
    from incdsi.text.encoders import load_encoder
    from incdsi_lab.experiments import datasets
    from incdsi_lab.experiments.tasks import run_tasks
    from incdsi_lab.living.report import write
    from incdsi_lab.living.study import PARTS, Living, Size

    dataset = datasets.read_dataset(given.name, given.data)
    datasets.require_texts(dataset)
    with progress("embedding") as report:
        data = datasets.embedded(dataset, load_encoder(), report)
    documents = min(given.documents, len(data.documents))
    size = Size(documents=documents, orders=given.orders, seed=given.seed)
    living = Living(data, size, given.out, given.only or PARTS)
    with progress("living") as report:
        run_tasks(living.tasks(), living.pieces, report)
    page = write(living, " ".join(["incdsi-lab", *sys.argv[1:]]))
    print(f"the report is {page}")


if __name__ == "__main__":
    main()
