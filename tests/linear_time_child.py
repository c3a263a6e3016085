"""Every pattern of the packages and everything that reads text, under attack; prints what is slower than linear.

Each runs in a process of its own with some seconds of processor time, not of a clock: linear work takes
hundredths of it, quadratic work many times as much.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import json
import os
import re
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from incdsi.cli.output import printable, sentences
from incdsi.documents import Document
from incdsi.filters import parse
from incdsi.index.snippets import snippet_of
from incdsi.lexical import LexicalIndex, tokenize
from incdsi.markdown import heading, without_links
from incdsi.readers import read_documents
from incdsi.store.filter_sql import compile_filter
from incdsi.text.generators import Spans
from incdsi.text.generators.spans import WINDOW, WINDOWS
from incdsi.text.passages.splitting import Sections
from incdsi.text.queries import distinct

SOURCE = Path(__file__).parent.parent / "src"  # both packages
SIZE = 150_000
SECONDS = 12
SPACES = (("", " ", "x"), ("x", " \n", "x"), ("", "\t ", ""))

# For each pattern texts that come near a match at many places: a beginning, what is repeated, an end.
ATTACKS: dict[str, tuple[tuple[str, str, str], ...]] = {
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}": (("", "a", "!"), ("", "a!", "")),
    r"--([a-z]+)-([a-z]+)": (("--", "a", ""), ("", "--a", ""), ("", "-", ""), ("", "a-", "")),
    r"[A-Za-z0-9._-]{1,64}": (("", "a", "!"), ("", "a!", "")),
    r"[A-Za-z][A-Za-z0-9_]{0,99}": (("", "a", "!"), ("", "a_", "!")),
    r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})": (("", "1", "x"), ("", "1.", "x"), ("1.1", "1", "x")),
    r"[\w.-]+:\d+/?": (("", "a", "!"), ("", "a.", ":"), ("a:", "1", "!")),
    r":\d*$": (("", ":1", "x"), (":", "1", "x"), ("", ":", "x")),
    "[!-~]{1,255}": (("", "a", "\0"),),
    r'\s*"(\d{1,18})"\s*': (*SPACES, ('"', "1", '"'), ('"1"', " ", "x")),
    r"\*\*(.+?)\*\*": (("", "**a\n", ""), ("**", "a*", ""), ("", "*", ""), ("", "** ", "")),
    "`(.+?)`": (("", "`a\n", ""), ("`", "a", ""), ("", "`", "")),
    "\0(.+?)\0": (("", "\0a\n", ""), ("\0", "a", ""), ("", "\0", "")),
    r"^[-+−]?[\d.,]+\b|^-$|^$": (("-", "1.", "x"), ("", ".", "x"), ("", "-", "")),
    r"</?[A-Za-z][^<>]*+>": (("", "<a", ""), ("<a", "b", ""), ("", "</", "")),
    r"^[ \t]*(```|~~~).*?(^[ \t]*\1|\Z)": (
        *SPACES,
        ("", "```\n", ""),
        ("", "```\n ~~~\n", ""),
        ("```", "\n  ``", ""),
        ("", "```", ""),
    ),
    r"!?\[([^\[\]]*+)\]\([^)\s\[]*+\)": (
        ("", "[", ""),
        ("", "[a](", ""),
        ("[", "a]", ""),
        ("[a](", "(", ""),
        ("", "![a](b", ""),
        ("", "[]", "("),
    ),
    r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+": (
        *SPACES,
        ("", "1.", ""),
        ("", "-\n", ""),
        ("-", " ", ""),
        ("", " 1\n", ""),
    ),
    r"(?<=[.!?…])[\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\Wa-z_])|(?<=[。！？])|\n\s*\n|\n(?=\0)": (
        *SPACES,
        (".", " ", "x"),
        (".", "'", "x"),
        (".", "'.", " x"),
        (". ", "(", "x"),
        ("", ". (", "x"),
        ("", "\n ", "x"),
        ("", "\n\v", "x"),
        ("", "。", ""),
    ),
    r" ?[;:—()\[\]] ?|, | [–-] ": (*SPACES, ("", ", ", ""), ("", " -", ""), ("", "(", "")),
    r"\w[\w'’.-]*\w|\w": (("a", ".", ""), ("", "a.", "."), ("", "a", ""), ("", "-", "a"), ("", "a- ", "")),
    "(?:\\b(?:[A-Z]|Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|Fig|Inc|Ltd|Co|Gen|Gov|Sen|Rep|Lt|Col|approx|cf|ca)"
    "|e\\.g|i\\.e)\\.$": (("", "Mr.", "x"), ("", "e.g.", "x"), ("", "A", ".x")),
    r"base\.(\d+)\.bin(\.tmp)?": (("base.", "1", "x"), ("", "base.1", ""), ("", "base.1.bin", "")),
    "[\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0640\u064b-\u065f\u0670]": (("a", "\u0301\u0323", ""),),
    r"[^\x00-\u02ff\w\s]{30}": (("", "\u0301", "a"), ("", "\u0301" * 29 + "a", ""), ("a", "\u3099\u0323", "")),
    "([\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3\uf900-\ufaff"
    "\U00020000-\U0003ffff]+)": (("", "あ", ""), ("", "あa", "")),
    r"[\w\u0900-\u0963\u0971-\u109f\u1780-\u17ff]+": (("", "a", ""), ("", "a ", ""), ("", "\u0941", "")),
    r"(\d{4}-\d\d-\d\d)"
    r"(?:[T ]((?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,6})?)?) ?(Z|[+-](?:[01]\d|2[0-3]):?[0-5]\d)?)?": (
        ("", "2024-05-01 ", ""),
        ("", "2024-05-01T12:30:00.", ""),
        ("", "1", ""),
    ),
    r"byte 0x\w\w": (("", "byte 0x", ""), ("", "byte 0xf", " ")),
    r"[a-z0-9]+": (("", "a", ""), ("", "a ", "")),
    r"(?:[^\W_]++|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0971-\u109f\u1780-\u17ff]++)+": (
        ("", "a", "_"),
        ("", "a\u0301", "_"),
        ("", "a_", ""),
        ("", "\u0301", "_"),
    ),
    r"<h([1-6])\b[^<>]{0,200}+>": (("", "<h1", ""), ("", "<h1 a", ""), ("<h1 ", "a", ""), ("", "<h1>", "")),
    r"([=\-~^\"'`#*+.:_])\1{2,}+[ \t\r]*+": (("", "=", "x"), ("===", " ", "x"), ("", "== ", ""), ("", "=-", "")),
    r"^[ \t]*+(`{3,}+(?=[^`]*+$)|~{3,}+)[ \t\r]*+": (*SPACES, ("", "`", ""), ("", "```a", ""), ("~~~", " ", "a")),
    r"(?:[-*+•>|]|\d{1,3}[.)])[ \t]": (*SPACES, ("", "1.", ""), ("", "-", ""), ("", "12", ")")),
}

# What reads text that somebody else wrote, and more texts for it.
TEXTS = (
    ("# a", " ", "b"),
    ("# ", "#", "b"),
    ("# ", "# ", "b"),
    ("", "#", "b"),
    ("", "# a\n", ""),
    ("", "a\n", ""),
    ("", "a. B; ", ""),
    ("", "<h1>a</b>", ""),
    ("", "<h1>a</h1>\n", ""),
    ("", "ab\n===\n", ""),
    ("", "```\n~~~ a\n", ""),
    ("", "    ```\n# a\n~~~~\n", ""),
    ("".join("`" * length + "\n" for length in range(400, 2, -1)), "~~~\n", ""),
    ("a", "\u0301", "\u0323" * (SIZE // 2)),
    ("あ", "\u3099", "\u0323" * (SIZE // 2)),
    ("", '"', ""),
    ("", '{"a":', ""),
    ("", '"a\n', ""),
    ("", "\0", ""),
    ("", "\x1b[", ""),
    ("", "1", ""),
)


def read(name: str, text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_text(text, encoding="utf-8")
        with contextlib.suppress(ValueError):  # a sentence
            for _ in read_documents(path, on_error=lambda error: None):
                pass


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "heading": heading,
    "without_links": without_links,
    "Spans": lambda text: Spans()(Document(id="a", title=text, text=text)),
    "Spans of a text read whole": lambda text: Spans()(Document(id="a", text=text[: WINDOW * WINDOWS - 1] + "b")),
    "Sections": lambda text: Sections().pieces(text, lambda some: [len(one) // 4 for one in some]),
    "tokenize": tokenize,
    "tokenize German": lambda text: tokenize(text, "german"),
    "distinct": lambda text: distinct(text.split(" ")),
    "printable": printable,
    "sentences": lambda text: sentences(text.split("\n"), "lines"),
    "snippet_of": lambda text: snippet_of(text, LexicalIndex().marker("a b あ登山")),
    "a filter": lambda text: compile_filter(parse({"or": [{text: {"in": text.split(" ")[:20_000]}}]})),
}
READERS: dict[str, Callable[[str], object]] = {
    "Markdown": lambda text: read("d.md", text),
    "Front matter": lambda text: read("d.md", f"---\na: 1\n{text[:30_000]}\n---\n"),
    "TOML": lambda text: read("d.md", f"+++\na = 1\n{text[:30_000]}\n+++\n"),
    "JSONL": lambda text: read("d.jsonl", text),
    "JSONL text": lambda text: read("d.jsonl", json.dumps({"id": "a", "text": text, "metadata": {"a": text}})),
    "CSV names": lambda text: read("d.csv", text),
    "CSV": lambda text: read("d.csv", "id,text,n\n" + text),
    "CSV cells": lambda text: read("d.csv", "id,text,n\n" + "a,b,1\n" * 1000 + text[:100_000].replace("\n", ",")),
    "TSV": lambda text: read("d.tsv", "id\ttext\tn\n" + text),
}


def patterns() -> Iterator[tuple[str, Callable[[str], object]]]:
    """Each pattern in the source, and how a text is put through it."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _of_re(node.func)]
        if calls:
            module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            names = vars(importlib.import_module(module.removesuffix(".__init__")))
            for call in calls:
                yield _pattern(call, names)


def _of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"


def _pattern(call: ast.Call, names: dict[str, Any]) -> tuple[str, Callable[[str], object]]:
    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), names)

    kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    place = {"compile": 1, "fullmatch": 2}.get(kind)
    flags = value(call.args[place]) if place is not None and len(call.args) > place else 0
    found = re.compile(value(call.args[0]), flags)
    # A compiled pattern may be used in any way: replacing everywhere is the one that costs most.
    return found.pattern, found.fullmatch if kind == "fullmatch" else lambda text: found.sub("", text)


def grown(attacks: tuple[tuple[str, str, str], ...]) -> Iterator[str]:
    for start, pump, end in attacks:
        yield start + pump * (SIZE // len(pump)) + end


def is_linear(act: Callable[[str], object], attacks: tuple[tuple[str, str, str], ...]) -> bool:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for text in grown(attacks):
            act(text)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def main() -> None:
    found = dict(patterns())
    for text in found.keys() ^ ATTACKS.keys():
        print("no attack for, or no longer there:", ascii(text))
    for text in found.keys() & ATTACKS.keys():
        if not is_linear(found[text], ATTACKS[text]):
            print("not linear:", ascii(text))
    everything = tuple({*TEXTS, *(attack for attacks in ATTACKS.values() for attack in attacks)})
    for name, act in FUNCTIONS.items():
        if not is_linear(act, everything):
            print("not linear:", name)
    for name, act in READERS.items():
        if not is_linear(act, TEXTS):
            print("not linear:", name)


if __name__ == "__main__":
    sys.exit(main())
