"""The BEIR layout: corpus.jsonl, queries.jsonl and qrels/{train,dev,test}.tsv."""

from __future__ import annotations

from pathlib import Path

from incdsi.errors import InvalidFile
from incdsi.readers.beir import COLUMNS, corpus
from incdsi.readers.fields import document_from, require_text
from incdsi_lab.collection import Collection, Gathering, Judged, Part
from incdsi_lab.data.fields import numbered, refusing, required_file, string, whole_rows

FILES: dict[str, Part] = {"train.tsv": "train", "dev.tsv": "val", "test.tsv": "test"}


def read_beir(folder: Path | str, name: str | None = None) -> Collection:
    """The collection in a folder, called `name`, or else like the folder.

    Judgements above zero count. A query with several documents becomes one for each, the second being
    called "q+2" and so on, because an index like this one is asked for one document.
    """
    source = Path(folder)
    gathering = Gathering(name or source.resolve().name)
    documents = corpus(source)
    for line, row in whole_rows(documents):
        with refusing(documents, line):
            document, _ = document_from(row)
        gathering.add_document(document, documents, line)
    texts = _texts(required_file(source, "queries.jsonl"))
    required_file(source / "qrels", "train.tsv")
    required_file(source / "qrels", "test.tsv")
    for file, part in FILES.items():
        if (source / "qrels" / file).is_file() or (source / "qrels" / f"{file}.gz").is_file():
            _add_part(gathering, required_file(source / "qrels", file), part, texts)
    return gathering.collection(source)


def _add_part(gathering: Gathering, path: Path, part: Part, texts: dict[str, str]) -> None:
    seen: dict[str, int] = {}
    for line, row in whole_rows(path):
        with refusing(path, line):
            query_id, document_id, relevant = _judgement(row)
            if query_id not in texts:
                raise ValueError(f"unknown query {query_id!r}; add it to queries.jsonl")
            if relevant:
                query = Judged(id=numbered(query_id, seen), text=texts[query_id], document_id=document_id, split=part)
                gathering.add_query(query, path, line)
    if not seen:
        raise InvalidFile("no judgement above zero; the split needs at least one", path=path)


def _judgement(row: dict[str, str]) -> tuple[str, str, bool]:
    query_id, document_id, score = (string(row, name) for name in COLUMNS)
    try:
        return query_id, document_id, float(score) > 0
    except ValueError as error:
        raise ValueError(f"the score must be a number, not {score!r}") from error


def _texts(path: Path) -> dict[str, str]:
    texts: dict[str, str] = {}
    for line, row in whole_rows(path):
        with refusing(path, line):
            query_id = string(row, "_id", "id")
            if query_id in texts:
                raise ValueError(f"query {query_id!r} again; ids must be unique")
            texts[query_id] = require_text(string(row, "text"), "text")
    return texts
