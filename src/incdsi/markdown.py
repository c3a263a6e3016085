"""Headings and links of Markdown, read in time linear in the text."""

from __future__ import annotations

import re

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


def without_links(text: str) -> str:
    """The text with the words of a link or picture in its place."""
    return _LINK.sub(r"\1", text)
