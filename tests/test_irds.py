"""`irds:` names a collection of ir_datasets wherever a file of documents or queries is named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from incdsi.documents import Document
from incdsi.errors import IncDSIError, InvalidFile, MissingExtra
from incdsi.readers import Layout, read_documents, read_queries
from tests.irds_samples import made

ir_datasets = pytest.importorskip("ir_datasets")


class Page(NamedTuple):
    """As of MS MARCO's documents: no field `text`."""

    doc_id: str
    url: str
    title: str
    body: str

    def default_text(self) -> str:
        return f"{self.title} {self.body}"


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[str]:
    with made(tmp_path, "train", "test") as name:
        yield name


def test_a_part_named_train_brings_its_questions_and_no_other_part_does(tiny: str) -> None:
    boots, stove = Document(id="boots", text="Waterproof boots."), Document(id="stove", text="A gas stove.")
    assert list(read_documents(tiny)) == list(read_documents(f"{tiny}/test")) == [(boots, []), (stove, [])]
    problems: list[IncDSIError] = []
    found = list(read_documents(f"{tiny}/train", on_error=problems.append))
    assert found == [(boots, ["dry feet"]), (stove, ["tea on a mountain"])]
    assert [str(one) for one in problems] == ["irds:tiny/train qrels:4: unknown query 'q3'"]


def test_queries_are_those_judged_relevant_of_the_part_asked_for(tiny: str) -> None:
    for source, split in ((f"{tiny}/test", None), (tiny, "test")):
        found = [(one.text, one.document_id) for one in read_queries(source, split=split, on_error=lambda _: None)]
        assert found == [("dry feet", "boots"), ("tea on a mountain", "stove")]


def test_a_document_without_a_text_has_the_default_one(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("boots", "http://shop/boots", "Boots", "Waterproof.")
    dataset = ir_datasets.load("tiny")
    monkeypatch.setattr(type(dataset), "docs_iter", lambda _: iter([page]), raising=False)
    ((document, _),) = read_documents(tiny)
    assert document == Document(id="boots", text="Boots Waterproof.", metadata={"url": "http://shop/boots"})


def test_what_is_not_there_is_refused_in_a_sentence(tiny: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidFile, match="has no dataset 'no/such'; see"):
        list(read_documents("irds:no/such"))
    with pytest.raises(InvalidFile, match="no queries; name a part of it"):
        list(read_queries(tiny))
    with pytest.raises(InvalidFile, match="leave these options out"):
        list(read_documents(tiny, layout=Layout(id="number")))
    monkeypatch.setitem(__import__("sys").modules, "ir_datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'incdsi\[eval\]'"):
        list(read_documents(tiny))
