"""Document vectors searched by an approximate index: chosen by size, said in `info`, and never used to place."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incdsi.engine.milvus import kinds
from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.kinds import CHOICE, FLAT
from incdsi.errors import InvalidInput, ServerError, UnsupportedFormat
from incdsi.index import Index
from tests.engines import Place

sys.path.append(str(Path(__file__).parents[1] / "index"))

from index_samples import PROBES, TOY, asked_for, doc, docs, stored


@pytest.mark.parametrize(
    ("choice", "documents", "found"),
    [
        ("", 10**9, "exact"),
        ("exact", 10**9, "exact"),
        ("hnsw", kinds.MANY - 1, "exact"),
        ("hnsw", kinds.MANY, "hnsw"),
        ("ivf:20", 19, "exact"),
        ("ivf:20", 20, "ivf"),
        ("diskann:0", 0, "diskann"),
    ],
)
def test_it_is_chosen_by_a_setting_and_by_size(
    monkeypatch: pytest.MonkeyPatch, choice: str, documents: int, found: str
) -> None:
    monkeypatch.setenv(CHOICE, choice)
    assert kinds.wanted(documents).name == found


@pytest.mark.parametrize("choice", ["quick", "hnsw:many", "exact:5", ":5"])
def test_any_other_choice_is_one_sentence(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    monkeypatch.setenv(CHOICE, choice)
    with pytest.raises(InvalidInput, match=f"{CHOICE} is '{choice}'; write exact, hnsw"):
        kinds.wanted(5)


@pytest.mark.parametrize("kind", ["hnsw", "ivf"])
def test_compacting_makes_it_and_says_so_and_makes_it_exact_again(
    milvus: Place, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    batch = docs(30)
    with Index.create(milvus("shop"), TOY) as index, Index.open(milvus("shop"), TOY) as searcher:
        index.add_many(batch, asked_for(batch, 3))
        before = stored(index)
        monkeypatch.setenv(CHOICE, f"{kind}:20")
        index.compact()
        assert index.info().vector_search == kind
        assert stored(index) == before
        assert index.verify() == []
        index.add(doc("one"), ["where is one"])
        index.update(doc("d3", 1))
        index.delete("d4")
        searcher.engine._follow(STRONG)
        assert searcher.info().vector_search == kind
        assert searcher.search("where is one", 1, mode="learned")[0].document_id == "one"
        monkeypatch.setenv(CHOICE, "exact")
        index.compact()
        assert index.info().vector_search == "exact"
        assert index.verify() == []


def test_what_is_listed_is_scored_exactly_and_placing_misses_nothing(
    milvus: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    batch = docs(40)
    with Index.create(tmp_path / "shop", TOY) as here:
        here.add_many(batch, asked_for(batch, 4))
        expected = _changed(here)
    monkeypatch.setenv(CHOICE, "hnsw:0")
    with Index.create(milvus("fresh shop"), TOY) as there:
        there.add_many(batch, asked_for(batch, 4))
        search = Connection.search

        def blind(self: Connection, name: str, *given: Any, **options: Any) -> Any:
            """An index that misses the best of every list."""
            found = search(self, name, *given, **options)
            if options.get("kind", FLAT) is FLAT:
                return found
            return [hits._replace(keys=hits.keys[1:], scores=hits.scores[1:], rows=hits.rows[1:]) for hits in found]

        monkeypatch.setattr(Connection, "search", blind)
        vectors, scores = _changed(there)
    assert vectors.keys() == expected[0].keys()
    assert max(float(np.abs(vectors[id] - expected[0][id]).max()) for id in vectors) < 1e-4
    assert scores.keys() != expected[1].keys()  # a search does use the index
    assert all(abs(score - expected[1][what]) < 1e-4 for what, score in scores.items() if what in expected[1])


def test_an_index_that_the_server_does_not_build_leaves_everything_as_it_was(
    milvus: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("incdsi.engine.milvus.connection.BUILDS_IN", 0.3)
    with Index.create(milvus("shop"), TOY) as index:
        index.add_many(docs(5))
        before = stored(index)
        with monkeypatch.context() as patch:
            patch.setenv(CHOICE, "hnsw:0")
            patch.setattr(Connection, "_pending", lambda *_: 5)
            with pytest.raises(ServerError, match=f"does not build the index it was asked for; set {CHOICE}"):
                index.compact()
        assert index.info().vector_search == "exact"
        index.add(doc("one"))
        index.delete("one")
        assert stored(index) == before


def test_lite_has_no_diskann(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CHOICE, "diskann:0")
    with pytest.raises(InvalidInput, match="Milvus Lite has no DiskANN"):
        Index.create(f"milvus+lite://{tmp_path / 'milvus.db'}/shop", TOY)


def test_an_approximate_index_that_somebody_else_made_is_refused(milvus: Place) -> None:
    with Index.create(milvus("fresh shop"), TOY) as index:
        name = index.engine._server.names.documents
    connection = Connection(index.engine.connection.address)
    client = connection._client
    client.release_collection(name)
    client.drop_index(name, "v")
    connection.index(name, kinds.named("HNSW"))
    with pytest.raises(UnsupportedFormat, match=r"somebody gave .* an index HNSW; make it FLAT again"):
        Index.open(milvus("fresh shop"), TOY)
    connection.drop(name)  # nobody else gets it
    connection.close()


def _changed(index: Index) -> tuple[dict[str, np.ndarray], dict[Any, float]]:
    """Vectors after a few changes, and scores of what is found."""
    index.add(doc("one"), ["where is one"])
    index.teach("something entirely new", "d7")
    index.update(doc("d3", 1))
    index.add_many(docs(5, 50))
    scores = {
        (probe, mode, hit.document_id): hit.score
        for probe in PROBES
        for mode in ("learned", "fused")
        for hit in index.search(probe, 5, mode=mode)
    }
    return dict(zip(*index.engine.vectors(), strict=True)), scores
