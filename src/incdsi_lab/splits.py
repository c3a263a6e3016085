"""Which documents are initial, new and tuning, and which queries train, choose and test; by seed, in plain files."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from incdsi.errors import InvalidFile, InvalidInput
from incdsi_lab.collection import Collection

FRACTIONS = (0.9, 0.09, 0.01)
VALIDATION = 0.2  # of the train queries, where a collection has no val of its own
SUMS = "SHA256SUMS"
ABOUT = "split.json"
DOCUMENT_PARTS = ("initial", "new", "tuning")
QUERY_PARTS = ("train", "val", "test")


@dataclass(frozen=True, kw_only=True)
class Split:
    """Document ids (`initial`, `new`, `tuning`) and query ids (`train`, `val`, `test`) of one collection.

    `new` is in the order in which the documents are added.
    """

    seed: int
    collection_digest: str
    initial: tuple[str, ...]
    new: tuple[str, ...]
    tuning: tuple[str, ...]
    train: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]

    def __post_init__(self) -> None:
        for names in (DOCUMENT_PARTS, QUERY_PARTS):
            together = [id for name in names for id in getattr(self, name)]
            if len(set(together)) != len(together):
                twice = next(id for id in together if together.count(id) > 1)
                raise InvalidInput(f"{twice!r} twice in {', '.join(names)}; each id belongs to one of them")
        for name in ("initial", "train", "test"):
            if not getattr(self, name):
                raise InvalidInput(f"the split has no {name} ids; it needs at least one")

    def write(self, folder: Path | str) -> None:
        """Write one id a line for each part, and their sha256 as `sha256sum -c` checks them."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        about = {"seed": self.seed, "collection": self.collection_digest}
        contents = {ABOUT: json.dumps(about, indent=1) + "\n"}
        for name in (*DOCUMENT_PARTS, *QUERY_PARTS):
            contents[f"{name}.txt"] = "".join(f"{_one_line(id)}\n" for id in getattr(self, name))
        for file, text in contents.items():
            (target / file).write_bytes(text.encode())
        sums = [f"{hashlib.sha256(text.encode()).hexdigest()}  {file}\n" for file, text in contents.items()]
        (target / SUMS).write_text("".join(sums))

    @classmethod
    def read(cls, folder: Path | str, collection: Collection | None = None) -> Split:
        """The split as written; InvalidFile when a file changed since, or it belongs to another collection."""
        source = Path(folder)
        contents = _verified(source)
        about = json.loads(contents[ABOUT])
        found = cls(
            seed=about["seed"],
            collection_digest=about["collection"],
            **{name: tuple(contents[f"{name}.txt"].split("\n")[:-1]) for name in (*DOCUMENT_PARTS, *QUERY_PARTS)},
        )
        if collection is not None and collection.digest != found.collection_digest:
            raise InvalidFile(
                f"expected a split of {collection.name} ({collection.digest[:12]}), found one of another collection "
                f"({found.collection_digest[:12]}); split again",
                path=source / ABOUT,
            )
        return found


def split(collection: Collection, seed: int, fractions: Sequence[float] = FRACTIONS) -> Split:
    """Documents at random into initial, new and tuning by `fractions`; queries as the collection has them.

    Without val queries of its own, a share VALIDATION of the train queries becomes them, at random. At
    least one document is new and one is for tuning where their fractions are above zero.
    """
    _require_fractions(fractions)
    draw = np.random.default_rng(seed)
    ids = [collection.documents[place].id for place in draw.permutation(len(collection.documents))]
    new, tuning = (max(1, round(share * len(ids))) if share else 0 for share in fractions[1:])
    if new + tuning >= len(ids):
        raise InvalidInput(f"splitting {collection.name} needs more than {new + tuning} documents; it has {len(ids)}")
    train, val = _train_and_val(collection, draw)
    return Split(
        seed=seed,
        collection_digest=collection.digest,
        new=tuple(ids[:new]),
        tuning=tuple(ids[new : new + tuning]),
        initial=tuple(ids[new + tuning :]),
        train=train,
        val=val,
        test=tuple(query.id for query in collection.of("test")),
    )


def _train_and_val(collection: Collection, draw: np.random.Generator) -> tuple[tuple[str, ...], tuple[str, ...]]:
    train = [query.id for query in collection.of("train")]
    val = [query.id for query in collection.of("val")]
    if val:
        return tuple(train), tuple(val)
    chosen = set(draw.permutation(len(train))[: round(VALIDATION * len(train))].tolist())
    kept = tuple(id for place, id in enumerate(train) if place not in chosen)
    return kept, tuple(id for place, id in enumerate(train) if place in chosen)


def _require_fractions(fractions: Sequence[float]) -> None:
    if len(fractions) != 3 or min(fractions) < 0 or not math.isclose(sum(fractions), 1.0):
        raise InvalidInput(f"the three fractions must add up to 1; these are {tuple(fractions)}")


def _one_line(id: str) -> str:
    if "\n" in id or "\r" in id:
        raise InvalidInput(f"a split holds one id a line; {id!r} has a line break")
    return id


def _verified(folder: Path) -> dict[str, str]:
    """The files' texts by name, each with the hash it was written with."""
    sums = folder / SUMS
    if not sums.is_file():
        raise InvalidFile("no such file; this is not a folder that Split.write made", path=sums)
    contents = {}
    for number, line in enumerate(sums.read_text().splitlines(), start=1):
        expected, _, name = line.partition("  ")
        file = folder / name
        if not file.is_file():
            raise InvalidFile(f"{name} is missing beside this file; restore it or split again", path=sums, line=number)
        found = file.read_bytes()
        if hashlib.sha256(found).hexdigest() != expected:
            raise InvalidFile(
                f"{name} has changed since it was written (sha256 {expected[:12]}); restore it or split again",
                path=sums,
                line=number,
            )
        contents[name] = found.decode()
    if missing := {ABOUT, *(f"{name}.txt" for name in (*DOCUMENT_PARTS, *QUERY_PARTS))} - contents.keys():
        raise InvalidFile(f"no hash of {', '.join(sorted(missing))}; restore this file or split again", path=sums)
    return contents
