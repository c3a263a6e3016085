"""An index filled in bulk, with and without stage 1 before it."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi import Document, Index, Taught
from incdsi.errors import DuplicateDocument, InvalidInput
from tests.test_demo import WordEncoder

pytestmark = pytest.mark.folder

DOCUMENTS = [
    Document(id=f"d{i}", text=f"thing{i} belongs to shelf{i % 5} and weighs weight{i % 7} grams") for i in range(40)
]
QUERIES = {f"d{i}": [f"where is thing{i}", f"how heavy is thing{i}"] for i in range(0, 40, 2)}


def h1(index: Index) -> float:
    right = [index.search(text, mode="learned")[0].document_id == id for id, some in QUERIES.items() for text in some]
    return float(np.mean(right))


@pytest.mark.parametrize("train", ["none", "frozen"])
def test_build_fills_an_index_that_opens_again(tmp_path, train):
    if train != "none":
        pytest.importorskip("torch")
    encoder = WordEncoder()
    queries = {**QUERIES, "d1": [Taught("the odd one"), "where is thing1"]}
    with Index.build(DOCUMENTS, queries=queries, path=tmp_path / "shop", train=train, encoder=encoder) as built:
        assert len(built) == 40
        assert h1(built) >= 0.8
        assert sorted(built.queries("d2")) == sorted(QUERIES["d2"])
        assert [text for text in built.queries("d1") if isinstance(text, Taught)] == ["the odd one"]
        assert built.search("the odd one")[0].document_id == "d1"
    with Index.open(tmp_path / "shop", encoder) as opened:
        assert h1(opened) >= 0.8
        opened.add(Document(id="late", text="a penguin"), ["penguin"])
        assert opened.search("penguin", mode="learned")[0].document_id == "late"
        assert opened.verify() == []


def test_build_refuses_before_it_makes_anything(tmp_path):
    with pytest.raises(DuplicateDocument, match="'d0' twice"):
        Index.build([DOCUMENTS[0], DOCUMENTS[0]], path=tmp_path / "shop", encoder=WordEncoder())
    with pytest.raises(InvalidInput, match="train must be one of none, frozen, finetune, not 'hard'"):
        Index.build(DOCUMENTS, path=tmp_path / "shop", train="hard", encoder=WordEncoder())  # type: ignore[arg-type]
    assert not (tmp_path / "shop").exists()


def test_a_taught_query_comes_first_in_fused_search_where_words_favour_another(tmp_path):
    with Index.build(DOCUMENTS, path=tmp_path / "shop", encoder=WordEncoder()) as index:
        question = "a present like thing7 for my uncle"
        assert index.search(question)[0].document_id == "d7"
        index.teach(question, "d11")
        assert index.search(question, mode="lexical")[0].document_id == "d11"  # words learn too
        assert index.search(question)[0].document_id == "d11"
