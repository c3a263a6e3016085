"""An index as a search model of MTEB: `mteb.evaluate(IncDSISearch(), tasks)`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from incdsi import __version__
from incdsi.adapter import packed
from incdsi.errors import InvalidInput, MissingExtra
from incdsi.index import Index
from incdsi.text.encoders import Encoder

try:
    from mteb.models.model_meta import ModelMeta
except ImportError as error:
    raise MissingExtra("MTEB is not installed; run: pip install mteb") from error

ID = "_id"  # the metadata field by which a reranking task's candidates are chosen
Row = Mapping[str, Any]


class IncDSISearch:
    """MTEB's search protocol: each corpus is indexed in a temporary folder and forgotten with the next."""

    def __init__(self, encoder: Encoder | str | Path | None = None, *, mode: str = "fused") -> None:
        self._encoder = encoder
        self._mode = mode
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._index: Index | None = None

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB files results under."""
        return ModelMeta.create_empty({"name": "incdsi/incdsi", "revision": __version__})

    def index(self, corpus: Iterable[Row], **_: Any) -> None:
        """Index a corpus of rows with id, title and text."""
        self.close()
        self._folder = tempfile.TemporaryDirectory(prefix="incdsi-mteb-")
        self._index = Index.create(Path(self._folder.name) / "corpus", self._encoder)
        self._index.add_many(
            packed(row["id"], row["text"], {ID: row["id"], "title": row.get("title") or ""}) for row in corpus
        )

    def search(
        self,
        queries: Iterable[Row],
        *,
        top_k: int,
        top_ranked: Mapping[str, Sequence[str]] | None = None,
        **_: Any,
    ) -> dict[str, dict[str, float]]:
        """Scores by query id and document id; with `top_ranked`, of each query's candidates alone."""
        if self._index is None:
            raise InvalidInput("there is nothing to search; index a corpus first")
        asked = {row["id"]: row["text"] for row in queries}
        if top_ranked is None:
            found = self._index.search_many([*asked.values()], top_k, mode=self._mode)
        else:
            found = [
                self._index.search(text, top_k, {ID: {"in": list(top_ranked.get(id, ()))}}, self._mode)
                for id, text in asked.items()
            ]
        return {id: {hit.document_id: hit.score for hit in hits} for id, hits in zip(asked, found, strict=True)}

    def close(self) -> None:
        """Forget the corpus."""
        if self._index is not None and self._folder is not None:
            self._index.close()
            self._folder.cleanup()
        self._index = self._folder = None
