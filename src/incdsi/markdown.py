"""Headings and links of Markdown and reStructuredText, read in time linear in the text."""

from __future__ import annotations

import re

LONGEST = 200  # characters of a heading
_RULE = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}+[ \t\r]*+")
_BULLET = re.compile(r"(?:[-*+•>|]|\d{1,3}[.)])[ \t]")
# No class takes an opening bracket, so the search from one ends before the next.
_LINK = re.compile(r"!?\[([^\[\]]*+)\]\([^)\s\[]*+\)")


def heading(line: str) -> str | None:
    """The text of a heading such as `## Boots ##`, which may be empty; None for any other line.

    >>> heading("## Boots for C# ##"), heading("#boots")
    ('Boots for C#', None)
    """
    text = line.lstrip(" ")
    rest = text.lstrip("#")
    if len(line) - len(text) > 3 or not 1 <= len(text) - len(rest) <= 6 or not rest.startswith((" ", "\t")):
        return None
    title = rest.strip(" \t\r")
    open_ended = title.rstrip("#")
    return title if open_ended and not open_ended.endswith((" ", "\t")) else open_ended.rstrip(" \t")


def underlines(line: str, before: str) -> bool:
    """Whether this line is a rule about as long as the title that stands before it."""
    title = before.rstrip()
    return (
        0 < len(title) <= min(LONGEST, len(line.rstrip()) + 3)
        and _RULE.fullmatch(line) is not None
        and not title.endswith((".", ","))
        and not title[0].isspace()
        and not _BULLET.match(before)
        and _RULE.fullmatch(before) is None
        and heading(before) is None
    )


def without_links(text: str) -> str:
    """The text with the words of a link or picture in its place."""
    return _LINK.sub(r"\1", text)
