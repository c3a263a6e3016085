"""TREC's own files: runs and qrels, as trec_eval and ir-measures read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

from incdsi.durable import appearing_file
from incdsi.errors import InvalidFile

Run = Mapping[str, Mapping[str, float]]
"""Scores by query id and document id."""
Qrels = Mapping[str, Mapping[str, int]]
"""Relevance by query id and document id."""


def run_line(query_id: str, document_id: str, rank: int, score: float, tag: str = "incdsi") -> str:
    """One line of a run; nine digits tell any two float32 scores apart."""
    return f"{one_word(query_id)} Q0 {one_word(document_id)} {rank} {score:.9g} {tag}"


def run_lines(run: Run, tag: str = "incdsi") -> Iterator[str]:
    """A run's lines, the best of each query first."""
    for query_id, scores in run.items():
        ranking = sorted(scores.items(), key=lambda pair: -pair[1])
        for rank, (document_id, score) in enumerate(ranking, start=1):
            yield run_line(query_id, document_id, rank, score, tag)


def qrels_lines(qrels: Qrels) -> Iterator[str]:
    """The lines of a qrels file."""
    for query_id, judged in qrels.items():
        for document_id, relevance in judged.items():
            yield f"{one_word(query_id)} 0 {one_word(document_id)} {relevance}"


def write_lines(path: Path | str, lines: Iterable[str]) -> int:
    """How many lines were written; the file appears only when all are."""
    written = 0
    with appearing_file(Path(path)) as file:
        for written, line in enumerate(lines, start=1):  # noqa: B007
            file.write(f"{line}\n".encode())
    return written


def spaceless(name: str) -> str:
    """The id itself or, where it has spaces, percent-encoded."""
    return name if name.split() == [name] else quote(name)


def one_word(name: str) -> str:
    """The id itself, when a TREC file can hold it."""
    if name.split() != [name]:
        raise InvalidFile(f"expected ids without spaces in a TREC run, found {name!r}; export jsonl instead")
    return name
