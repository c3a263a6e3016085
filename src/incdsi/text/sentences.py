"""Where sentences begin and end."""

from __future__ import annotations

import re
from collections.abc import Iterator

_EDGE = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\Wa-z_])|(?<=[。！？])|\n\s*\n|\n(?=\0)")
_SHORTENED = re.compile(
    r"(?:\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Fig|Inc|Ltd|Co|Gen|Gov|Sen|Rep|Lt|Col|approx|cf|ca)|e\.g|i\.e)\.$"
)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of the pieces between sentence ends; an abbreviation or initial does not end a sentence."""
    start = 0
    for edge in _EDGE.finditer(text):
        if _SHORTENED.search(text, max(start, edge.start() - 8), edge.start()):
            continue
        yield start, edge.start()
        start = edge.end()
    yield start, len(text)
