"""The headings of a text: Markdown's, HTML's, and titles that are underlined; in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from incdsi.markdown import heading, without_links

LONGEST = 200  # characters of a heading
_TAGGED = re.compile(r"<h([1-6])\b[^<>]{0,200}+>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_RULE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}+[ \t\r]*+")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_BULLET = re.compile(r"(?:[-*+•>|]|\d{1,3}[.)])[ \t]")


class Heading(NamedTuple):
    """Where it begins and ends, how deep it is, and what it says."""

    start: int
    end: int
    level: int
    title: str


class Section(NamedTuple):
    """What lies between two headings, and all headings it is under, the outermost first."""

    start: int
    end: int
    headings: tuple[str, ...]


def sections(text: str) -> list[Section]:
    """The text without its headings, in order; what stands before the first is under none."""
    found = headings(text)
    under: list[Heading] = []
    result = [Section(0, found[0].start if found else len(text), ())]
    for one, after in zip_longest(found, found[1:]):
        under = [*(outer for outer in under if outer.level < one.level), one]
        end = len(text) if after is None else after.start
        result.append(Section(min(one.end, end), end, tuple(outer.title for outer in under)))
    return result


def headings(text: str) -> list[Heading]:
    """All headings in their order, none of those inside fenced code."""
    found: list[Heading] = []
    rules: list[str] = []  # what titles are underlined with, in the order they are seen: the levels
    fence, before, place = "", "", 0
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if not fence and _underlines(line, before):
            if line[0] not in rules:
                rules.append(line[0])
            level = rules.index(line[0]) + 1
            found.append(Heading(place - len(before) - 1, place + len(line), level, _plain(before)))
        elif mark and fence in ("", mark[1]):
            fence = "" if fence else mark[1]
        elif not fence:
            found += _in_line(line, place)
        before, place = line, place + len(line) + 1
    return [one for one in found if one.title]


def _in_line(line: str, place: int) -> Iterator[Heading]:
    title = heading(line)
    if title is not None:
        hashes = line.lstrip(" ")
        yield Heading(place, place + len(line), len(hashes) - len(hashes.lstrip("#")), _plain(title))
    elif "<" in line:
        for tag in _TAGGED.finditer(line):
            end = line.find("</", tag.end(), tag.end() + 4 * LONGEST)
            while end >= 0 and line[end + 2 : end + 3] not in "hH":
                end = line.find("</", end + 2, tag.end() + 4 * LONGEST)
            if end >= 0:
                said = _plain(_TAG.sub(" ", line[tag.end() : end]))
                yield Heading(place + tag.start(), place + end + len("</h1>"), int(tag[1]), said)


def _underlines(line: str, before: str) -> bool:
    """Whether this line is a rule about as long as the title that stands before it."""
    title = before.rstrip()
    return (
        0 < len(title) <= min(LONGEST, len(line.rstrip()) + 3)
        and _RULE.fullmatch(line) is not None
        and line.rstrip() not in ("~~~", "```")  # Markdown's fences
        and not title.endswith((".", ","))
        and not title[0].isspace()
        and not _BULLET.match(before)
        and _RULE.fullmatch(before) is None
        and heading(before) is None
    )


def _plain(title: str) -> str:
    return " ".join(without_links(title[: 4 * LONGEST]).replace("**", "").replace("`", "").split())[:LONGEST]
