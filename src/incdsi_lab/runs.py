"""Runs and qrels, in memory and as the lines of TREC's files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import quote

from incdsi.trec import one_word, run_line

Run = Mapping[str, Mapping[str, float]]
"""Scores by query id and document id."""
Qrels = Mapping[str, Mapping[str, int]]
"""Relevance by query id and document id."""


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


def spaceless(name: str) -> str:
    """The id itself or, where it has spaces, percent-encoded."""
    return name if name.split() == [name] else quote(name)
