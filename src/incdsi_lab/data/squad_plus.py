"""squad_plus from public files: SQuAD 1.1 dev and SQuADShifts, as the package bigbench 1.0.0 holds them."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from incdsi.documents import Document
from incdsi.durable import require_vacant
from incdsi.errors import InvalidFile
from incdsi_lab.collection import Collection, Judged, Part
from incdsi_lab.data.jsonl import write_jsonl

PACKAGE = "bigbench==1.0.0"
SHA256 = "1bb398a5512c6d798cdebe0dfa0ac03f67f6033fa6b39c6ef71df978c7cbc5c2"  # of its source distribution
INSIDE = "bigbench-1.0.0/bigbench/benchmark_tasks/squad_shifts"
FILES = {
    "squad": "squaddev_v1.1.json",
    "wiki": "new_wiki_v1.0.json",
    "nyt": "nyt_v1.0.json",
    "reddit": "reddit_v1.0.json",
    "amazon": "amazon_reviews_v1.0.json",
}
DIGEST = "a2bf156b1379f4d5553c7d1938f51e8620f36f48e69326eca598f17a3baa41bc"  # of the collection


def build(folder: Path) -> Collection:
    """Fetch the public files by pip and write the collection of the committed reports; refuse any other."""
    require_vacant(folder)
    with tempfile.TemporaryDirectory() as scratch:
        collection = squad_plus(fetched(Path(scratch)))
    if collection.digest != DIGEST:
        raise InvalidFile(f"{PACKAGE} does not hold the files the study was made from (sha256 {collection.digest})")
    write_jsonl(collection, folder)
    return collection


def fetched(scratch: Path) -> dict[str, Any]:
    """The five files as they are in the package's source distribution, by where they come from."""
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{PACKAGE} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "bigbench"]
    command += ["--require-hashes", "--requirement", str(wanted), "--dest", str(scratch)]
    done = subprocess.run(command, stdout=sys.stderr, check=False)
    archives = list(scratch.glob("*.tar.gz"))
    if done.returncode or not archives:
        raise InvalidFile(f"pip could not download {PACKAGE}; what it said is above")
    with tarfile.open(archives[0]) as archive:
        return {source: _member(archive, f"{INSIDE}/{name}") for source, name in FILES.items()}


def squad_plus(files: Mapping[str, Any]) -> Collection:
    """Paragraphs as documents, questions as queries; a paragraph that comes again only adds its questions."""
    documents: list[Document] = []
    asked: list[tuple[str, str, str]] = []  # id, text and document id, in the order of the files
    for source, content in files.items():
        found: dict[str, Document] = {}
        for article in content["data"]:
            for paragraph in article["paragraphs"]:
                text = paragraph["context"]
                new = Document(id=f"{source}-{len(found):05d}", title=_title(source, article["title"]), text=text)
                own = found.setdefault(text, new)
                for one in paragraph["qas"]:
                    asked.append((f"{source}:{one['id']}", " ".join(one["question"].split()), own.id))
        documents += found.values()
    parts = parts_of([(id, document_id) for id, _, document_id in asked])
    queries = [Judged(id=id, text=text, document_id=owner, split=parts[id]) for id, text, owner in asked]
    return Collection(name="squad_plus", documents=documents, queries=queries)


def parts_of(queries: Iterable[tuple[str, str]]) -> dict[str, Part]:
    """The part of each query, by its id and its document's.

    Of each document's queries one is for testing, one for validation where there are four or more, and the rest for
    training. Hashes decide which: the same on every machine.
    """
    parts: dict[str, Part] = {}
    by_document: dict[str, list[str]] = {}
    for id, document_id in queries:
        by_document.setdefault(document_id, []).append(id)
        parts[id] = "train"
    for ids in by_document.values():
        ids.sort(key=lambda id: hashlib.sha1(id.encode()).digest())
        parts[ids[-1]] = "test"
        if len(ids) >= 4:
            parts[ids[-2]] = "val"
    return parts


def _title(source: str, given: str) -> str:
    """Of Wikipedia as it is, of a newspaper by the article's address; forum and shop have one title for all."""
    if source == "nyt":
        return Path(given).stem.replace("-", " ")
    return given.replace("_", " ") if source in ("squad", "wiki") else ""


def _member(archive: tarfile.TarFile, name: str) -> Any:
    file = archive.extractfile(name)
    assert file is not None
    return json.load(file)
