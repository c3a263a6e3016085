"""A folder of text, Markdown and reStructuredText files, each one document; front matter becomes title and metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from incdsi.documents import Document
from incdsi.errors import InvalidFile
from incdsi.markdown import heading, underlines
from incdsi.readers import front_matter
from incdsi.readers.fields import require_text
from incdsi.readers.rows import LONGEST, not_utf8

ENDINGS = (".txt", ".md", ".markdown", ".rst")

PlacedText = tuple[str, tuple[Document, list[str]] | InvalidFile]


def placed_texts(folder: Path) -> Iterator[PlacedText]:
    """Every text file below the folder in the order of their paths, hidden ones left out."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    for path in paths:
        relative = path.relative_to(folder)
        if not any(part.startswith(".") for part in relative.parts):
            yield placed_text(path, relative.as_posix())


def other_endings(folder: Path) -> dict[str, int]:
    """How many files below the folder have each ending that is not read, hidden ones left out."""
    visible = (
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts)
    )
    return dict(Counter(path.suffix.lower() for path in visible if path.suffix.lower() not in ENDINGS))


def placed_text(path: Path, document_id: str) -> PlacedText:
    """One file as a document; a file that is too long, empty or not UTF-8 is an InvalidFile."""
    try:
        return str(path), (_document(path, require_text(document_id, "the file's name")), [])
    except OSError as error:
        return str(path), InvalidFile(f"cannot be read: {error.strerror}", path=path)
    except UnicodeDecodeError as error:
        return str(path), InvalidFile(not_utf8(error.object[error.start]), path=path)
    except ValueError as error:
        return str(path), InvalidFile(str(error), path=path)


def _document(path: Path, document_id: str) -> Document:
    if path.stat().st_size > LONGEST:
        raise ValueError(f"expected at most {LONGEST // 2**20} MiB, found {path.stat().st_size} bytes; split the file")
    text = path.read_bytes().decode("utf-8-sig")
    if not text.strip():
        raise ValueError("the file is empty; fill or remove it")
    if path.suffix.lower() == ".txt":
        return Document(id=document_id, title=path.stem, text=text)
    if path.suffix.lower() == ".rst":
        titles = (before.strip() for before, line in pairwise(text.split("\n")) if underlines(line, before))
        return Document(id=document_id, title=next(titles, "") or path.stem, text=text)
    title, metadata, body = front_matter.split(text)
    headings = (found for line in body.split("\n") if (found := heading(line)) is not None)
    return Document(id=document_id, title=title or next(headings, "") or path.stem, text=body, metadata=metadata)
