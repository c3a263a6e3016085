"""Natural Questions in its own JSONL: the simplified train file, and the dev file as released.

| file  | fields read                                                                          |
| ----- | ------------------------------------------------------------------------------------ |
| train | example_id, question_text, document_url, document_text (tokens and tags, by spaces)  |
| dev   | the same, with document_tokens (token, html_token) where there is no document_text    |
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from incdsi.documents import Document
from incdsi.errors import InvalidFile
from incdsi_lab.collection import Collection, Gathering, Judged, Part
from incdsi_lab.data.fields import refusing, string, whole_rows

WORDS = 1000
TAG = re.compile(r"</?[A-Za-z][^<>]*+>")
PARTS: tuple[tuple[Part, str], ...] = (("train", "*train*.jsonl*"), ("test", "*dev*.jsonl*"))


def read_natural_questions(folder: Path | str, name: str = "nq320k") -> Collection:
    """NQ320K: pages de-duplicated by title, questions of *train*.jsonl to train and of *dev*.jsonl to test.

    A document's id is its page's name in the address, its text the first WORDS words of the page as it was when
    it first comes (all pages whole would take gigabytes). Without val questions, `splits.split` takes them
    from train.
    """
    source = Path(folder)
    gathering = Gathering(name)
    for part, pattern in PARTS:
        for path in _files(source, pattern):
            for line, row in whole_rows(path):
                with refusing(path, line):
                    query = _judged(row, part)
                    if not gathering.has_document(query.document_id):
                        gathering.add_document(_document(row), path, line)
                gathering.add_query(query, path, line)
    return gathering.collection(source)


def _files(folder: Path, pattern: str) -> list[Path]:
    files = sorted(folder.glob(pattern)) if folder.is_dir() else []
    if not files:
        raise InvalidFile(f"no file {pattern} of Natural Questions in this folder", path=folder)
    return files


def _judged(row: Mapping[str, Any], part: Part) -> Judged:
    return Judged(id=string(row, "example_id"), text=string(row, "question_text"), document_id=_page(row), split=part)


def _document(row: Mapping[str, Any]) -> Document:
    page = _page(row)
    return Document(id=page, title=page.replace("_", " "), text=" ".join(_words(row)[:WORDS]))


def _page(row: Mapping[str, Any]) -> str:
    """The page's name as its address has it, such as Email_marketing; revisions of a page have one name."""
    address = string(row, "document_url").replace("&amp;", "&")
    parsed = urlsplit(address)
    titles = parse_qs(parsed.query).get("title", [])
    page = titles[0] if titles else unquote(parsed.path.partition("/wiki/")[2])
    if not page.strip():
        raise ValueError(f"{address!r} is not the address of a page with a title")
    return page.strip().replace(" ", "_")


def _words(row: Mapping[str, Any]) -> list[str]:
    if isinstance(row.get("document_text"), str):
        return _untagged(row["document_text"].split())
    tokens = row.get("document_tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, dict) and "token" in token for token in tokens):
        raise ValueError("neither document_text nor document_tokens")
    return [str(token["token"]) for token in tokens if not token.get("html_token")]


def _untagged(tokens: Iterable[str]) -> list[str]:
    return [token for token in tokens if not TAG.fullmatch(token)]
