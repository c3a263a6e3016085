"""What people and programs read: tables on stdout, JSON on stdout, notes on stderr."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any

import typer

from incdsi.documents import Addition, Document, Hit, Snippet, queries_to_json

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from incdsi.info import Tuning

MOST_SENTENCES = 20
TUNED = ("learned", "fused")
MOST_CONFLICTS = 10

# Control characters but tab and line feed, separators of lines, overrides of direction, lone surrogates.
_STEERING = ((0x00, 0x09), (0x0B, 0x20), (0x7F, 0xA0), (0x2028, 0x202F), (0x2066, 0x206A), (0xD800, 0xE000))
_ESCAPES = {code: chr(code).encode("unicode_escape").decode() for start, end in _STEERING for code in range(start, end)}


def emit(value: Any) -> None:
    """One line of JSON."""
    write_line(as_line(value))


def write_line(line: str) -> None:
    """A line for programs: exact, but for a terminal, which it must not steer."""
    typer.echo(printable(line) if sys.stdout.isatty() else line)


def as_line(value: Any) -> str:
    """JSON without line breaks; numbers that JSON does not know become null."""
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def note(text: str, *, quiet: bool = False) -> None:
    """A sentence beside the result."""
    if not quiet:
        typer.secho(printable(text), err=True, dim=True)


def show(*parts: RenderableType) -> None:
    """Print for people: colours on a terminal only, long text folded to its width."""
    from rich.console import Console

    console = Console(markup=False, highlight=False, emoji=False)
    for part in parts:
        shown = printable(part) if isinstance(part, str) else part
        console.print(shown, soft_wrap=isinstance(part, str) and not console.is_terminal)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> RenderableType:
    """A plain table; numbers stand on the right."""
    from rich.table import Table
    from rich.text import Text

    cells = [[_cell(value) for value in row] for row in rows]
    made = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for place, name in enumerate(columns):
        numbers = bool(cells) and all(right for _, right in (row[place] for row in cells))
        made.add_column(Text(printable(name)), justify="right" if numbers else "left", overflow="fold")
    for row in cells:
        made.add_row(*(text if not isinstance(text, str) else Text(printable(text)) for text, _ in row))
    return made


def hits_table(hits: Sequence[Hit], *, texts: bool = True) -> RenderableType:
    """Rank, score, confidence where it is known, id, and the title over what matches best, its words in bold."""
    known = any(hit.confidence is not None for hit in hits)
    rows = [
        (hit.rank, f"{hit.score:.3f}", *_confidence(hit, known), hit.document_id, _shown(hit, texts=texts))
        for hit in hits
    ]
    return table(("", "score", *(["right"] if known else []), "id", "document"), rows)


def _confidence(hit: Hit, known: bool) -> list[str]:
    return [f"{hit.confidence or 0.0:.0%}"] if known else []


def conflicts_table(additions: Iterable[Addition]) -> list[RenderableType]:
    """The documents that compete with others for a query, those that lose most first; nothing when there is none."""
    added = list(additions)
    found = sorted((one for one in added if one.conflicts), key=lambda one: one.margin)
    if not found:
        return []
    rows = [(one.document_id, one.status, f"{one.margin:.3f}", _some(one.conflicts)) for one in found[:MOST_CONFLICTS]]
    compete = f"{len(found):,} of {len(added):,} {'competes' if len(found) == 1 else 'compete'} with others for a query"
    more = f" The {MOST_CONFLICTS} that lose most (--json has all):" if len(found) > MOST_CONFLICTS else ""
    heading = f"\n{compete}, as near-duplicates do. All are in the index and can be found.{more}"
    return [heading, table(("id", "status", "margin", "competes with"), rows)]


def status_legend(additions: Iterable[Addition]) -> list[str]:
    """What each status in the conflicts table means."""
    return list(dict.fromkeys(f"{one.status}: {one.explanation}" for one in additions if one.conflicts))


def tuning_sentence(tuning: Tuning) -> str:
    """What the index chose for itself, what it gained, and how to forbid it."""
    before, after = tuning.before["fused"].hits_at_1, tuning.after["fused"].hits_at_1
    return (
        f"tuned itself on {tuning.queries:,} held-out question{'' if tuning.queries == 1 else 's'}: "
        f"fused H@1 {before:.1f} -> {after:.1f}; switch off with `incdsi tune --no-tuning`"
    )


def gained(tuning: Tuning) -> str:
    """What a tuning gained, in points of H@1, for each way of searching that it changes."""
    parts = (f"{mode} {tuning.after[mode].hits_at_1 - tuning.before[mode].hits_at_1:+.1f}" for mode in TUNED)
    return f"gained in H@1: {', '.join(parts)} points"


def printable(text: str) -> str:
    """The text with what would steer a terminal shown as an escape, such as \\x1b; lines and tabs are kept."""
    return text.replace("\r\n", "\n").translate(_ESCAPES)


def sentences(problems: Sequence[str], noun: str) -> str:
    """The first of each cause, one a line, with how many more lines have it; then how many causes more there are."""
    causes: dict[str, list[str]] = {}
    for problem in problems:
        causes.setdefault(_cause(problem), []).append(problem)
    said = [_with_others(alike) for alike in list(causes.values())[:MOST_SENTENCES]]
    hidden = sum(map(len, list(causes.values())[MOST_SENTENCES:]))
    return "\n".join([*said, *([f"... and {hidden:,} more {noun}"] if hidden else [])])


def count(number: int) -> str:
    """So many documents."""
    return f"{number:,} document{'' if number == 1 else 's'}"


def document_json(document: Document, queries: Sequence[str]) -> dict[str, Any]:
    """A document in the form `add` reads."""
    return {**document.to_json(), **queries_to_json(queries)}


def hit_json(hit: Hit, *, texts: bool = True) -> dict[str, Any]:
    """A hit with its document, a long one by its best passages in place of its text; without `texts` no text at all."""
    found = {"rank": hit.rank, "score": hit.score, "confidence": hit.confidence, **hit.document.to_json()}
    passages = [passage.to_json() for passage in hit.passages]
    for one in (*(passages if not texts else ()), *([found] if passages or not texts else ())):
        del one["text"]
    return {**found, "snippet": hit.snippet.to_json(), "passages": passages}


def _shown(hit: Hit, *, texts: bool) -> RenderableType:
    from rich.text import Text

    title = " ".join(printable(hit.document.title).split())
    lines = [Text(title, "bold cyan")] if title else []
    for headings, snippet in [(one.headings, one.snippet) for one in hit.passages] or [((), hit.snippet)]:
        path = " › ".join(heading for heading in headings if heading != hit.document.title)
        lines += [Text(printable(path), "cyan")] if path else []
        lines += [_in_bold(snippet)] if texts else []
    return Text("\n").join(lines)


def _in_bold(snippet: Snippet) -> Text:
    from rich.text import Text

    ends = (0, *(end for _, end in snippet.marks))
    pieces = [
        (snippet.text[last:start], snippet.text[start:end])
        for last, (start, end) in zip(ends, snippet.marks, strict=False)
    ]
    parts = [part for before, word in pieces for part in (printable(before), (printable(word), "bold"))]
    return Text.assemble(*parts, printable(snippet.text[ends[-1] :]))


def _cause(problem: str) -> str:
    """What is said after file and line, whichever byte it is said of."""
    place, _, cause = problem.partition(": ")
    return re.sub(r"byte 0x\w\w", "byte", cause) if place.rpartition(":")[2].isdigit() else problem


def _with_others(alike: Sequence[str]) -> str:
    others = len(alike) - 1
    return alike[0] + (f" (and {others:,} more line{'' if others == 1 else 's'} like it)" if others else "")


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5} more" if len(ids) > 5 else "")


def _cell(value: Any) -> tuple[Any, bool]:
    if isinstance(value, int | float):
        return f"{value:,}", True
    return value, isinstance(value, str) and value.replace(".", "", 1).replace("-", "", 1).isdigit()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
