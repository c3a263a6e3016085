"""`incdsi-lab data squad`: builds the collection that the study needs and we may not ship."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from incdsi.errors import IncDSIError
from incdsi_lab.data.location import ENVIRONMENT
from incdsi_lab.data.squad_plus import build


def main() -> None:
    """What the script `incdsi-lab` runs."""
    parser = argparse.ArgumentParser(prog="incdsi-lab", description="Data for the study of `incdsi repro`.")
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
    folder = parser.parse_args().data / "squad_plus"
    try:
        collection = build(folder)
    except IncDSIError as error:
        sys.exit(str(error))
    print(f"{folder}: {len(collection.documents):,} documents, {len(collection.queries):,} queries")
    print(f"next: incdsi repro squad --data {folder.parent}")


if __name__ == "__main__":
    main()
