"""learn and gaps: from the logs of a search box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from incdsi.cli.application import app, stopping
from incdsi.cli.opening import open_index
from incdsi.cli.options import AsJson, IndexPlace, Quiet, SkipBad, is_address
from incdsi.cli.output import count, emit, note, sentences, show, table
from incdsi.cli.progress import progress
from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned, Outcome
from incdsi.errors import InvalidInput
from incdsi.gaps import CANDIDATES, LEAST_CONFIDENCE, Gap, Gaps, find_gaps
from incdsi.progress import Progress

if TYPE_CHECKING:
    from rich.console import RenderableType

    from incdsi.readers import OnError
    from incdsi.search_index import SearchIndex

T = TypeVar("T")
EXAMPLES = 3  # of each reason
Log = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="JSONL, CSV or TSV (also .gz), or - for stdin; none for a server's own log."),
]


@app.command()
def learn(
    index: IndexPlace,
    source: Log = None,
    least: Annotated[
        int, typer.Option("--least", min=1, metavar="N", help="Clicks on a document that a query needs.")
    ] = LEAST_CLICKS,
    share: Annotated[
        float, typer.Option("--share", metavar="S", help="Share of the query's clicks that they must be, 0 to 1.")
    ] = LEAST_SHARE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be learned, and learn nothing.")] = False,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Learn from what people clicked.

    Each line has a query, the id of the document that was clicked and, if it stands for several clicks, a
    count. A query is learned for a document with at least --least clicks that are --share of all clicks for
    it: one click may be a slip, and where people disagree nobody is right. What is ignored is counted, with
    the reason. The same log again changes nothing.

    \b
    Examples:
      incdsi learn clicks.jsonl --index shop
      incdsi learn clicks.csv --index shop --least 5 --share 0.8 --dry-run
      incdsi learn --index http://127.0.0.1:7799
    """
    hidden = as_json or quiet
    clicks, skipped = _read(source, index, _clicks, skip_bad)
    with (
        open_index(index) as opened,
        progress("learning", hidden=hidden) as report,
        stopping(lambda: "stopped; what was learned by then is kept; run the same command for the rest"),
    ):
        learned = opened.learn(clicks, least=least, share=share, dry_run=dry_run, progress=report)
    if as_json:
        emit({**learned.to_json(), "skipped": skipped})
        return
    note(sentences(skipped, "lines"), quiet=quiet or not skipped)
    show(*_told(learned))


@app.command()
def gaps(
    index: IndexPlace,
    source: Log = None,
    least: Annotated[
        float, typer.Option("--least", metavar="P", help="Queries whose best hit is right less probably than this.")
    ] = LEAST_CONFIDENCE,
    k: Annotated[int, typer.Option("-k", min=1, help="Candidates shown for each.")] = CANDIDATES,
    skip_bad: SkipBad = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Show what people ask and the index cannot answer well, most asked first.

    Every query of the log is asked again, so what was taught since is not shown. An index that cannot tell
    confidence yet is judged by words: a gap is then a query that has no word in common with its best hit.
    Teach the right document, or add the one that is missing.

    \b
    Examples:
      incdsi gaps queries.jsonl --index shop
      incdsi gaps --index http://127.0.0.1:7799
      incdsi gaps queries.jsonl --index shop --least 0.3 --json
    """
    hidden = as_json or quiet
    asked, skipped = _read(source, index, _asked, skip_bad)
    with open_index(index) as opened, progress("asking", hidden=hidden) as report:
        found = _gaps(opened, asked, least, k, report)
    if as_json:
        emit({"gaps": found.gaps, "queries": found.queries, "judged_by": found.judged_by, "skipped": skipped})
        return
    note(sentences(skipped, "lines"), quiet=quiet or not skipped)
    if found.judged_by == "words" and found.queries:
        note("this index cannot tell confidence yet: judged by words in common with the best hit", quiet=quiet)
    show(f"{_queries(len(found.gaps))} of {found.queries:,} not answered well")
    if found.gaps:
        show(_table(found))
        note("`incdsi teach QUERY ID` says which document is right", quiet=quiet)


def _read(
    source: str | None, index: str, reader: Callable[[str, OnError], Iterator[T]], skip_bad: bool
) -> tuple[list[T] | None, list[str]]:
    """What the log holds, and what is wrong with it; None when the server is to read its own."""
    if source is None:
        if not is_address(index):
            raise InvalidInput("name the file of the log; only a server keeps one of its own")
        return None, []
    problems: list[str] = []
    found = list(reader(source, lambda error: problems.append(str(error))))
    if problems and not (skip_bad and found):
        raise InvalidInput(f"{sentences(problems, 'lines')}\nnothing was read; fix this first, or use --skip-bad")
    return found, problems


def _clicks(source: str, on_error: OnError) -> Iterator[Click]:
    from incdsi.readers import read_clicks

    return read_clicks(source, on_error=on_error)


def _asked(source: str, on_error: OnError) -> Iterator[str]:
    from incdsi.readers import read_asked

    return read_asked(source, on_error=on_error)


def _gaps(index: SearchIndex, asked: list[str] | None, least: float, k: int, report: Progress) -> Gaps:
    if asked is None:
        from incdsi.client import RemoteIndex, kept_gaps

        assert isinstance(index, RemoteIndex)  # `_read` saw to it
        return kept_gaps(index, least=least, k=k)
    return find_gaps(index, asked, least=least, k=k, progress=report)


def _told(learned: Learned) -> Iterator[str]:
    """What was learned, then what was ignored and why, with examples."""
    taken = [lesson for lesson in learned.lessons if lesson.outcome is Outcome.LEARNED]
    documents = len({lesson.document_id for lesson in taken})
    if taken:
        verb = "would learn" if learned.dry_run else "learned"
        yield f"{verb} {_queries(len(taken))} for {count(documents)}"
    else:
        yield "nothing new to learn: the index is as it was"
    reasons = Counter(lesson.outcome for lesson in learned.lessons if lesson.outcome is not Outcome.LEARNED)
    for reason, number in reasons.most_common():
        alike = [lesson for lesson in learned.lessons if lesson.outcome is reason][:EXAMPLES]
        shown = ", ".join(f"{lesson.query!r} for {lesson.document_id}" for lesson in alike)
        verb = "already known" if reason is Outcome.KNOWN else "ignored"
        why = "" if reason is Outcome.KNOWN else f": {reason.value}"
        yield f"{verb} {number:,}{why} ({shown}{', ...' if number > EXAMPLES else ''})"


def _table(found: Gaps) -> RenderableType:
    rows = [(gap.times, gap.query, _confidence(gap), _candidates(gap)) for gap in found.gaps]
    return table(("asked", "query", "right", "candidates"), rows)


def _confidence(gap: Gap) -> str:
    return gap.reason if gap.confidence is None else f"{gap.confidence:.0%}"


def _candidates(gap: Gap) -> str:
    return "\n".join(f"{one.id}  {' '.join(one.title.split())[:60]}".rstrip() for one in gap.candidates)


def _queries(number: int) -> str:
    return f"{number:,} quer{'y' if number == 1 else 'ies'}"
