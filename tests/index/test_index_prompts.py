"""Documents go through the encoder of documents; whatever is asked goes through that of queries."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from incdsi import Document, Index
from incdsi.store import Store
from tests.test_demo import WordEncoder


class Two(WordEncoder):
    """Queries as WordEncoder embeds them; documents with every word turned round."""

    def __init__(self, name: str = "two") -> None:
        self.fingerprint = name
        self.documents = Turned()


class Turned(WordEncoder):
    fingerprint = "turned"

    def encode(self, texts, progress=None):
        return super().encode([turned(text) for text in texts], progress)


def turned(text: str) -> str:
    return " ".join(word[::-1] for word in text.split())


DOCUMENTS = [Document(id=f"d{i}", text=f"stone{i} river{i}. A mountain{i}, far away.") for i in range(4)]
QUERIES = {"d0": ["where is stone0", "river0"], "d1": ["mountain1 please"]}


def require_each_by_its_own(path: Path) -> None:
    """Every stored embedding is what its encoder makes of its text."""
    queries, documents = WordEncoder(), Turned()
    with Store.open(path, writer=False) as store:
        records = list(store.changes(0).upserts)
    assert len(records) == len(DOCUMENTS)
    for record in records:
        assert np.allclose(record.anchor, documents.encode([record.document.content])[0], atol=1e-6)
        for query in record.queries:
            assert np.allclose(query.embedding, queries.encode([query.text])[0], atol=1e-6)


@pytest.mark.parametrize("train", ["none", "frozen"])
def test_every_way_in(tmp_path: Path, train: str) -> None:
    if train != "none":
        pytest.importorskip("torch")
    with Index.build(DOCUMENTS, queries=QUERIES, path=tmp_path / "shop", train=train, encoder=Two()) as index:
        index.attach({"d2": ["what of river2"]})
        index.teach("the third", "d3")
        index.update(DOCUMENTS[1], ["mountain1 again"])
    require_each_by_its_own(tmp_path / "shop")


def test_another_encoder_embeds_both_anew(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", WordEncoder()) as index:
        index.add_many(DOCUMENTS, QUERIES)
        index.adopt(Two())
    require_each_by_its_own(tmp_path / "shop")


def test_a_search_is_a_query(tmp_path: Path) -> None:
    with Index.create(tmp_path / "shop", Two()) as index:
        index.add_many(DOCUMENTS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Turned, "encode", lambda *_: pytest.fail("a search went through the encoder of documents"))
            assert len(index.search("stone2 river2", mode="learned")) == len(DOCUMENTS)


def test_the_pair_that_the_documentation_shows(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "ENCODERS.md").read_text()
    found: dict[str, type] = {}
    exec(page.split("```python\n")[1].split("```")[0], found)
    pair = found["Pair"](WordEncoder(), Turned())
    with Index.create(tmp_path / "shop", pair) as index:
        index.add_many(DOCUMENTS, QUERIES)
        assert index.info().encoder == "words turned"
    require_each_by_its_own(tmp_path / "shop")
