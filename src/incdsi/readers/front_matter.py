"""What stands before a Markdown text: YAML between lines of ---, or TOML between lines of +++."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from datetime import time
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from incdsi.readers.columns import cell_value

if TYPE_CHECKING:
    from yaml import Node

LONGEST = 2**15  # characters; what is longer is text between two rules
_ENDS = {"---": ("---", "..."), "+++": ("+++",)}
_DEEPEST = 64  # brackets within brackets; PyYAML's time grows with the square of their number
_MOST_WORDS = 4  # in the name of a field; what has more before its colon is a sentence


def split(text: str) -> tuple[str, dict[str, Any], str]:
    """Title, metadata and the text after the front matter; without any, no title, no metadata and the whole text.

    A YAML scalar without quotes is read like a cell of a table. A mapping becomes fields with dotted names, a list that
    holds more than plain values its JSON; what is empty is left out. ValueError when it cannot be read.
    """
    first, _, rest = text[:LONGEST].partition("\n")
    fence = first.rstrip()
    end = _end(rest, _ENDS[fence]) if fence in _ENDS else None
    if end is None:
        return "", {}, text
    fields = _yaml(rest[: end[0]]) if fence == "---" else _toml(rest[: end[0]])
    if fields is None:
        return "", {}, text
    title = fields.pop("title", None)
    return str(title or ""), dict(_flat(fields)), text[len(first) + 1 + end[1] :].lstrip("\r\n")


def _end(rest: str, marks: tuple[str, ...]) -> tuple[int, int] | None:
    """Where the line that closes it begins and ends."""
    place = 0
    for line in rest.splitlines(keepends=True):
        if line.rstrip() in marks:
            return place, place + len(line)
        place += len(line)
    return None


def _yaml(text: str) -> dict[str, Any] | None:
    """The fields; None when it is no mapping but text between two rules."""
    import yaml

    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        return {}
    if not _is_field(lines[0]):
        return None
    if _depth(text) > _DEEPEST:
        raise ValueError("front matter is nested too deeply; write lists and mappings with fewer brackets")
    try:
        for event in yaml.parse(text, Loader=yaml.BaseLoader):
            if isinstance(event, yaml.AliasEvent):  # a few lines of them can stand for gigabytes
                raise ValueError("front matter with YAML aliases (*) is not read; write the values out")
        node = yaml.compose(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f" in line {mark.line + 2}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "it is nested too deeply"
        raise ValueError(f"front matter is not valid YAML{place}: {problem}; quote values with a colon") from error
    return _mapping(node, titled=True) if isinstance(node, yaml.MappingNode) else None


def _depth(text: str) -> int:
    """How many brackets are open at most, those in quotes as well."""
    steps = ((character in "[{") - (character in "]}") for character in text)
    return max(accumulate(steps), default=0)


def _is_field(line: str) -> bool:
    name, colon, _ = f"{line} ".partition(": ")
    return bool(colon and (name[:1].isalnum() or name[:1] in ("_", '"', "'")) and len(name.split()) <= _MOST_WORDS)


def _mapping(node: Node, *, titled: bool = False) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in node.value:
        if not isinstance(key.value, str):
            raise ValueError("a field of the front matter has a list or mapping as its name; use a text")
        if key.value in fields:
            raise ValueError(f"front matter has {key.value!r} twice; keep one")
        as_written = titled and key.value == "title" and isinstance(value.value, str)
        fields[key.value] = value.value if as_written else _value(value)
    return fields


def _value(node: Node) -> Any:
    if node.id == "mapping":
        return _mapping(node)
    if node.id == "sequence":
        return [_value(one) for one in node.value]
    return cell_value(node.value) if node.style is None else node.value


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text.replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"front matter is not valid TOML: {error}") from error


def _flat(fields: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, list) and any(isinstance(one, list | Mapping) for one in value):
            yield f"{before}{name}", json.dumps(value, ensure_ascii=False, default=str)
        elif value is not None and value != "":
            yield f"{before}{name}", value.isoformat() if isinstance(value, time) else value
