"""MS MARCO documents through ir-datasets, which downloads them or uses its own folder."""

from __future__ import annotations

from typing import Any

from incdsi.documents import Document
from incdsi.errors import InvalidFile, MissingExtra
from incdsi_lab.collection import Collection, Gathering, Judged, Part
from incdsi_lab.data.fields import numbered, refusing

TRAIN, TEST = "msmarco-document/train", "msmarco-document/dev"


def read_msmarco(train: str = TRAIN, test: str = TEST) -> Collection:
    """The documents that have queries, with the official train queries, and the official dev ones to test.

    The names are those of ir-datasets. A refusal names the dataset, and for the line the judgement's or
    document's number in it. A query with several documents becomes one for each. One pass over all documents.
    """
    datasets = [("train", _load(train), train), ("test", _load(test), test)]
    gathering = Gathering("msmarco")
    wanted = {
        judgement.doc_id for _, dataset, _ in datasets for judgement in dataset.qrels_iter() if judgement.relevance > 0
    }
    _add_documents(gathering, datasets[0][1], train, wanted)
    for part, dataset, source in datasets:
        _add_queries(gathering, dataset, "train" if part == "train" else "test", source)
    return gathering.collection(train)


def _load(dataset: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise MissingExtra("reading MS MARCO needs ir-datasets; install it with: pip install 'incdsi[eval]'") from error
    try:
        return ir_datasets.load(dataset)
    except KeyError as error:
        raise InvalidFile("ir-datasets has no dataset of that name", path=dataset) from error


def _add_documents(gathering: Gathering, dataset: Any, source: str, wanted: set[str]) -> None:
    for number, found in enumerate(dataset.docs_iter(), start=1):
        if found.doc_id in wanted:
            with refusing(f"{source} docs", number):
                document = Document(id=found.doc_id, title=found.title, text=found.body, metadata={"url": found.url})
            gathering.add_document(document, f"{source} docs", number)


def _add_queries(gathering: Gathering, dataset: Any, part: Part, source: str) -> None:
    texts = {query.query_id: query.text for query in dataset.queries_iter()}
    seen: dict[str, int] = {}
    place = f"{source} qrels"
    for number, found in enumerate(dataset.qrels_iter(), start=1):
        if found.relevance <= 0:
            continue
        if found.query_id not in texts:
            raise InvalidFile(f"unknown query {found.query_id!r}", path=place, line=number)
        with refusing(place, number):
            query = Judged(
                id=numbered(found.query_id, seen), text=texts[found.query_id], document_id=found.doc_id, split=part
            )
        gathering.add_query(query, place, number)
