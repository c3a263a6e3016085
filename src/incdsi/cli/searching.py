"""search."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from incdsi.cli.application import app
from incdsi.cli.opening import open_index
from incdsi.cli.options import AsJson, Depth, Filter, IndexPlace, LeastConfidence, Mode, SearchMode, parse_filter
from incdsi.cli.output import emit, hit_json, hits_table, show
from incdsi.cli.reading import stdin_lines

if TYPE_CHECKING:
    from incdsi.search_index import SearchIndex

TOGETHER = 64  # queries of a file that are answered together


@app.command()
def search(
    query: Annotated[str, typer.Argument(help="What to look for, or - for one query a line on stdin.")],
    index: IndexPlace,
    k: Depth = 10,
    where: Filter = None,
    mode: SearchMode = Mode.fused,
    least: LeastConfidence = None,
    passages: Annotated[
        int, typer.Option("--passages", min=1, metavar="N", help="Show N passages of each long document.")
    ] = 1,
    no_text: Annotated[bool, typer.Option("--no-text", help="Leave texts out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Find documents.

    Each is found once, a long one by the passage that matches best. --json has a long document's
    passages in place of its text; `incdsi get` shows it whole.

    \b
    Examples:
      incdsi search "waterproof hiking boots" --index shop
      incdsi search "boots" --index shop -k 3 --where '{"lang": "en", "price": {"lt": 100}}'
      incdsi search "how do I care for leather" --index shop --passages 3
      incdsi search "boots" --index shop --json --no-text
      incdsi search - --index shop --mode lexical --json < queries.txt
    """
    chosen = parse_filter(where)
    with open_index(index) as opened:
        for texts in _queries(query):
            begin = time.perf_counter()
            found = opened.search_many(texts, k, chosen, mode, least=least, passages=passages)
            spent = 1000 * (time.perf_counter() - begin) / len(texts)
            for text, hits in zip(texts, found, strict=True):
                if as_json:
                    hit_list = [hit_json(hit, texts=not no_text) for hit in hits]
                    emit({"query": text, "mode": mode, "milliseconds": spent, "hits": hit_list})
                else:
                    nothing = "" if hits else _nothing(opened, mode, least, filtered=chosen is not None)
                    show(*([f"\n{text}"] if query == "-" else []))
                    show(nothing or hits_table(hits, texts=not no_text))


def _nothing(index: SearchIndex, mode: Mode, least: float | None, *, filtered: bool) -> str:
    """Why there is no hit."""
    if not len(index):
        return "no documents"
    if least is not None:
        return f"no hit is right with a probability of {least:g} or more"
    if filtered:
        shares = " and shares a word with the query" if mode is Mode.lexical else ""
        return f"no document passes the filter{shares}"
    return "no document shares a word with the query"


def _queries(given: str) -> Iterator[list[str]]:
    """The query, or those on stdin: many at once from a file, and from whoever may wait for an answer one by one."""
    if given != "-":
        yield [given]
        return
    lines, size = stdin_lines(), 1
    with contextlib.suppress(OSError):  # no file at all
        size = TOGETHER if stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode) else 1
    while texts := list(islice(lines, size)):
        yield texts
