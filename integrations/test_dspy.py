"""The module for DSPy, in an environment of its own (`make test-research`): its pins and ours exclude each other."""

from __future__ import annotations

import pytest

from incdsi import Index
from tests.index.index_samples import docs

dspy = pytest.importorskip("dspy", exc_type=ImportError)

DOCUMENTS = docs(30)
ASKED = DOCUMENTS[3].text.split(".")[0]


@pytest.fixture
def filled(index: Index) -> Index:
    index.add_many(DOCUMENTS)
    return index


def test_dspy_calls_a_retriever(filled: Index) -> None:
    from incdsi.dspy import IncDSIRetriever

    found = IncDSIRetriever(filled, k=2)(ASKED)
    assert isinstance(found, dspy.Prediction)
    assert found.ids == [hit.document_id for hit in filled.search(ASKED, 2)]
    assert (found.ids[0], found.passages[0]) == ("d3", DOCUMENTS[3].text)
    assert len(IncDSIRetriever(filled)(ASKED, k=1).scores) == 1


def test_a_module_of_dspy_retrieves_in_its_forward(filled: Index) -> None:
    from incdsi.dspy import IncDSIRetriever

    class Finder(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.retrieve = IncDSIRetriever(filled, k=2)

        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(context=self.retrieve(question).passages)

    assert Finder()(question=ASKED).context[0] == DOCUMENTS[3].text
