"""`python -m benchmarks.feedback.picture`: the results as docs/pictures/feedback.svg and in the page of the docs.

Each line is a way: from where questions that nobody taught were first to where they are first after the lessons.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path

from benchmarks.feedback.__main__ import NAMES
from benchmarks.index.run import Result
from benchmarks.machine import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
PICTURE, PAGE = DOCS / "pictures" / "feedback.svg", DOCS / "explanation" / "feedback.md"
BEGIN, END = "<!-- results: written by benchmarks.feedback.picture -->\n", "<!-- end of results -->\n"
WIDTH, LINE, HEAD, LEFT, RIGHT = 1000, 24, 64, 396, 680  # of the axis, from 0 to 100 % first
TAUGHT, LOST, SPENT = 740, 815, 920  # where figures are
STYLE = """
    .back{fill:#fff}.ink{fill:#222}.soft{fill:#666}.old{fill:#888}.peer{fill:#3f6fb5}.ours{fill:#c2410c}
    .grid{stroke:#ddd}.way{stroke:#999}
    @media (prefers-color-scheme: dark){.back{fill:#16181d}.ink{fill:#eee}.soft{fill:#aaa}.old{fill:#999}
    .peer{fill:#8db4f0}.ours{fill:#fb923c}.grid{stroke:#3a3d45}.way{stroke:#777}}
"""


def main() -> None:
    found = {name: path for name in NAMES if (path := RESULTS / f"feedback-{name}.json").exists()}
    courses = [json.loads(path.read_text()) for path in found.values()]
    PICTURE.write_text(drawn(courses))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "\n\n".join(table(course) for course in courses) + "\n\n" + END + after)


def drawn(courses: Sequence[Result]) -> str:
    """One panel a course, below each other."""
    parts, top = [], 8
    for course in courses:
        parts.append(panel(course, top))
        top += HEAD + LINE * len(course["ways"]) + 16
    what = "How many questions that nobody taught find their document first, before and after the lessons, by way"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top}" role="img" aria-label="{what}" '
        f'font-family="system-ui, sans-serif" font-size="13">\n  <style>{STYLE}  </style>\n'
        f'  <rect width="{WIDTH}" height="{top}" rx="8" class="back"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def panel(course: Result, top: int) -> str:
    bottom = top + HEAD + LINE * len(course["ways"])
    lines = [text(16, top + 20, course["course"], "ink", bold=True)]
    for percent in range(0, 101, 20):
        lines.append(text(x(percent), top + HEAD - 10, f"{percent} %", "soft", anchor="middle"))
        lines.append(f'<line x1="{x(percent)}" x2="{x(percent)}" y1="{top + HEAD - 4}" y2="{bottom}" class="grid"/>')
    heads = (("taught", TAUGHT), ("lost", LOST), ("CPU ms a lesson", SPENT))
    lines += [text(at, top + HEAD - 10, head, "soft", anchor="middle") for head, at in heads]
    for number, row in enumerate(course["ways"]):
        lines.append(line(row, top + HEAD + LINE * number + 16, ours=number == 0))
    return "\n".join(f"  {one}" for one in lines)


def line(row: Result, y: int, *, ours: bool) -> str:
    untaught = row["paraphrases"]
    before, after = (x(untaught[when]["percent"]) for when in ("first_before", "first_after"))
    name = row["way"] if ours else f"{row['system']}: {row['way']}"
    taught = f"{row['lessons']['first_after']['percent']:.1f} %"
    figures = ((taught, TAUGHT), (lost(row), LOST), (lesson(row, 0), SPENT))
    parts = [
        text(LEFT - 14, y, name, "ink", anchor="end", bold=ours),
        f'<line x1="{before}" x2="{after}" y1="{y - 4}" y2="{y - 4}" class="way" stroke-width="2"/>',
        f'<circle cx="{before}" cy="{y - 4}" r="4" class="old"/>',
        f'<circle cx="{after}" cy="{y - 4}" r="6" class="{"ours" if ours else "peer"}"/>',
        *(text(at, y, figure, "ink", anchor="middle", bold=ours) for figure, at in figures),
    ]
    return "".join(parts)


def lesson(row: Result, digits: int) -> str:
    """The median of the processor's milliseconds, if they were measured."""
    timed = row.get("lesson_cpu")
    return f"{timed['p50_ms']:.{digits}f}" if timed else "–"


def lost(row: Result) -> str:
    """Of the questions nobody taught, those that were first and are no longer, of documents taught nothing if any."""
    part = row["others"] if "others" in row else row["paraphrases"]
    return f"{100 * part['no_longer_first'] / part['n']:.1f} %"


def text(at: float, y: float, said: str, kind: str, *, anchor: str = "start", bold: bool = False) -> str:
    weight = ' font-weight="600"' if bold else ""
    return f'<text x="{at}" y="{y}" class="{kind}" text-anchor="{anchor}"{weight}>{escape(said)}</text>'


def x(percent: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * percent / 100, 1)


def table(course: Result) -> str:
    """The same as Markdown, with counts and intervals."""
    n = course["n"]
    others = f"other documents' questions (n = {n['others']:,}): became first / no longer" if n["others"] else ""
    heads = [
        "way",
        f"taught questions first (n = {n['lessons']:,})",
        f"questions nobody taught, first before → after (n = {n['paraphrases']:,})",
        "became first / no longer",
        *([others] if others else []),
        "CPU ms a lesson, median",
    ]
    rows = [heads, ["---"] * len(heads), *(cells(row) for row in course["ways"])]
    return "\n".join([f"**{course['course']}**", "", *("| " + " | ".join(row) + " |" for row in rows)])


def cells(row: Result) -> list[str]:
    chosen = ", ".join(f"{name} {value:g}" for name, value in row["chosen"].items())
    untaught, others = row["paraphrases"], row.get("others")
    before, after = untaught["first_before"]["percent"], share(untaught)
    return [
        f"{row['system']}: {row['way']}" + (f" ({chosen})" if chosen else ""),
        share(row["lessons"]),
        f"{before:.1f} → {after}",
        counts(untaught),
        *([counts(others)] if others else []),
        lesson(row, 1),
    ]


def share(part: Result) -> str:
    low, high = part["first_after"]["interval"]
    return f"{part['first_after']['percent']:.1f} [{low:.1f}, {high:.1f}]"


def counts(part: Result) -> str:
    return f"{part['became_first']:,} / {part['no_longer_first']:,}"


if __name__ == "__main__":
    main()
