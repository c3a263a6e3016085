"""An index in PyTerrier's experiments: a retriever for pipelines and an indexer; neither needs Java.

>>> retriever = IncDSIIndexer("index").index(dataset.get_corpus_iter())             # doctest: +SKIP
>>> pt.Experiment([retriever % 10, other], topics, qrels, ["ndcg_cut_10"])          # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from incdsi.adapter import opened, packed
from incdsi.documents import Document
from incdsi.errors import MissingExtra
from incdsi.filters import Where
from incdsi.search_index import SearchIndex

try:
    import pandas as pd
    import pyterrier as pt
except ImportError as error:
    raise MissingExtra("PyTerrier is not installed; run: pip install pyterrier") from error

AT_A_TIME = 1000  # documents read before they are written
FOUND = ["docno", "score", "rank"]


class IncDSIRetriever(pt.Transformer):  # type: ignore[misc]
    """Queries (qid, query) to results (docno, score, rank); other columns of the queries stay."""

    def __init__(
        self,
        index: SearchIndex | str | Path,
        num_results: int = 1000,
        *,
        where: Where | None = None,
        mode: str = "fused",
    ) -> None:
        self.index = opened(index)
        self.num_results = num_results
        self.where = where
        self.mode = mode

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The best documents for each query; ranks count from 0, as everywhere in PyTerrier."""
        pt.validate.query_frame(inp, extra_columns=["query"])
        asked = inp.drop(columns=FOUND, errors="ignore")
        texts = asked["query"].tolist()
        found = self.index.search_many(texts, self.num_results, self.where, self.mode) if texts else []
        rows = [(place, hit.document_id, hit.score, hit.rank - 1) for place, hits in enumerate(found) for hit in hits]
        places, *columns = zip(*rows, strict=True) if rows else ([], [], [], [])
        results = asked.iloc[list(places)].reset_index(drop=True)
        return results.assign(**dict(zip(FOUND, map(list, columns), strict=True)))


class IncDSIIndexer(pt.Indexer):  # type: ignore[misc]
    """Documents (docno, text, and what else they have as metadata) into an index, created if missing."""

    def __init__(self, index: SearchIndex | str | Path) -> None:
        self.opened = opened(index, create=True)

    def index_inputs(self) -> list[list[str]]:
        """What a document must have."""
        return [["docno", "text"]]

    def index(self, iter: Iterable[Mapping[str, Any]], **kwargs: Any) -> IncDSIRetriever:
        """Add or replace documents; a retriever of all there are."""
        documents = map(_document, iter)
        while batch := list(islice(documents, AT_A_TIME)):
            self.opened.upsert_many(batch)
        return IncDSIRetriever(self.opened)


def _document(given: Mapping[str, Any]) -> Document:
    rest = {name: value for name, value in given.items() if name not in ("docno", "text")}
    return packed(str(given["docno"]), given["text"], rest)
