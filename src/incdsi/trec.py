"""TREC's own files, as trec_eval and ir-measures read them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from incdsi.durable import appearing_file
from incdsi.errors import InvalidFile


def run_line(query_id: str, document_id: str, rank: int, score: float, tag: str = "incdsi") -> str:
    """One line of a run; nine digits tell any two float32 scores apart."""
    return f"{one_word(query_id)} Q0 {one_word(document_id)} {rank} {score:.9g} {tag}"


def write_lines(path: Path | str, lines: Iterable[str]) -> int:
    """How many lines were written; the file appears only when all are."""
    written = 0
    with appearing_file(Path(path)) as file:
        for written, line in enumerate(lines, start=1):  # noqa: B007
            file.write(f"{line}\n".encode())
    return written


def one_word(name: str) -> str:
    """The id itself, when a TREC file can hold it."""
    if name.split() != [name]:
        raise InvalidFile(f"expected ids without spaces in a TREC run, found {name!r}; export jsonl instead")
    return name
