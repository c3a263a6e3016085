"""The headings of a text: Markdown's, HTML's, and titles that are underlined; in time linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from incdsi.markdown import LONGEST, heading, underlines, without_links

DEEPEST = 3  # spaces before a fence; with more it is in a list
_TAGGED = re.compile(r"<h([1-6])\b[^<>]{0,200}+>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
_FENCE = re.compile(r"^[ \t]*+(`{3,}+(?=[^`]*+$)|~{3,}+)[ \t\r]*+")


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
    lines = text.split("\n")
    found: list[Heading] = []
    rules: list[str] = []  # what titles are underlined with, in the order they are seen: the levels
    closing, closed, before, place = _closing(lines), -1, "", 0
    for number, line in enumerate(lines):
        if number > closed:
            fence = number in closing and line.rstrip() in ("~~~", "```")
            if not fence and underlines(line, before):
                if line[0] not in rules:
                    rules.append(line[0])
                level = rules.index(line[0]) + 1
                found.append(Heading(place - len(before) - 1, place + len(line), level, _plain(before)))
            elif number in closing:
                closed = closing[number]
            else:
                found += _in_line(line, place)
        before, place = line, place + len(line) + 1
    return [one for one in found if one.title]


def _closing(lines: Sequence[str]) -> dict[int, int]:
    """The last line of fenced code by its first: at a fence as long or longer, or where the list it is in ends.

    A fence that nothing closes before the next one opens was forgotten: it is text, and hides no headings.
    """
    found: dict[int, int] = {}
    later: dict[str, list[tuple[int, int, bool]]] = {"`": [], "~": []}  # line, length, closes; the longer the deeper
    outer = len(lines)  # the next line that is not indented
    for number in reversed(range(len(lines))):
        line = lines[number]
        if mark := _FENCE.match(line):
            fences, length = later[mark[1][0]], len(mark[1])
            while fences and fences[-1][1] < length:
                fences.pop()
            end, _, closes = fences[-1] if fences else (len(lines), 0, False)
            if mark.start(1) > DEEPEST and outer < min(end, len(lines)):
                found[number] = outer - 1
            elif closes:
                found[number] = end
            fences.append((number, length, mark.end() == len(line)))
        if line.strip() and not line[0].isspace():
            outer = number
    return found


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


def _plain(title: str) -> str:
    return " ".join(without_links(title[: 4 * LONGEST]).replace("**", "").replace("`", "").split())[:LONGEST]
