"""What splits texts, as plain values that an index remembers, and restored from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from incdsi.errors import InvalidInput
from incdsi.text.passages.splitting import Sections, Span

Own = Callable[[str], Sequence[Span | str]]
"""A splitter of one's own: a text to begins and ends in it, or to pieces of it, in order."""
Splitter = Sections | Own | Literal["none"]


def described(splitter: Splitter) -> dict[str, Any]:
    """Its name and parameters; for the caller's own, where it is defined."""
    if splitter == "none":
        return {"name": "none"}
    if isinstance(splitter, Sections):
        return {"name": "sections", **asdict(splitter)}
    if not callable(splitter):
        raise InvalidInput(f"a splitter must be a function of a text, Sections(...) or 'none', not {splitter!r:.60}")
    kind: Any = splitter if hasattr(splitter, "__qualname__") else type(splitter)
    return {"name": "own", "defined": f"{kind.__module__}.{kind.__qualname__}"}


def restored(described: Mapping[str, Any]) -> Splitter:
    """The splitter with that name and these parameters; InvalidInput if it cannot be restored."""
    name, parameters = described["name"], {key: value for key, value in described.items() if key != "name"}
    if name == "none":
        return "none"
    if name == "own":
        raise InvalidInput(
            f"the texts of this index are split by a splitter of your own, {parameters.get('defined')}; "
            "open the index with splitter=... to add or update documents"
        )
    unknown = InvalidInput(
        f"the texts of this index are split by {name!r} with {parameters}, unknown to this version; "
        "upgrade incdsi, or open the index with splitter=..."
    )
    if name != "sections":
        raise unknown
    try:
        return Sections(**parameters)
    except TypeError as error:  # parameters of a newer version
        raise unknown from error
