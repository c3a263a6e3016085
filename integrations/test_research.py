"""The modules for PyTerrier and MTEB, where these are installed: `make test-research`."""

from __future__ import annotations

from typing import Any

import pytest

from incdsi import Index
from tests.index.index_samples import TOY, docs

DOCUMENTS = docs(30)
ASKED = {f"q{n}": DOCUMENTS[n].text.split(".")[0] for n in range(5)}


@pytest.fixture
def filled(index: Index) -> Index:
    index.add_many(DOCUMENTS)
    return index


def test_an_experiment_of_pyterrier_runs_over_a_retriever(index: Index) -> None:
    pt = pytest.importorskip("pyterrier")
    import pandas as pd

    from incdsi.pyterrier import IncDSIIndexer, IncDSIRetriever

    corpus = [{"docno": one.id, "text": one.text, "lang": one.metadata["lang"]} for one in DOCUMENTS]
    retriever = IncDSIIndexer(index).index(iter(corpus))
    topics = pd.DataFrame({"qid": ASKED.keys(), "query": ASKED.values(), "source": "log"})
    found = (retriever % 3)(topics)
    assert list(found.columns) == ["qid", "query", "source", "docno", "score", "rank"]
    best = [hits[0].document_id for hits in index.search_many([*ASKED.values()], 1)]
    assert found[found["rank"] == 0]["docno"].tolist() == best
    qrels = pd.DataFrame({"qid": ASKED.keys(), "docno": [f"d{n}" for n in range(5)], "label": 1})
    table = pt.Experiment([retriever], topics, qrels, ["recip_rank"], names=["incdsi"])
    assert table["recip_rank"][0] > 0.9
    german = IncDSIRetriever(index, where={"lang": "de"})
    assert set(german(topics)["docno"]) == {one.id for one in DOCUMENTS if one.metadata["lang"] == "de"}


def test_pyterrier_can_inspect_and_validate_the_retriever(filled: Index) -> None:
    pt = pytest.importorskip("pyterrier")
    import pandas as pd

    from incdsi.pyterrier import IncDSIIndexer, IncDSIRetriever

    retriever = IncDSIRetriever(filled)
    assert pt.inspect.transformer_outputs(retriever, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    with pytest.raises(KeyError, match="query"):
        retriever(pd.DataFrame({"qid": ["q1"]}))
    assert pt.inspect.indexer_inputs(IncDSIIndexer(filled)) == [["docno", "text"]]


def test_mteb_searches_and_reranks(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mteb")
    from mteb.models.models_protocols import SearchProtocol

    from incdsi.mteb import IncDSISearch

    model = IncDSISearch(TOY)
    assert isinstance(model, SearchProtocol)
    assert model.mteb_model_meta.name == "incdsi/incdsi"
    told: dict[str, Any] = {"task_metadata": None, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}}
    corpus = [{"id": one.id, "title": "", "text": one.text} for one in DOCUMENTS]
    queries = [{"id": id, "text": text} for id, text in ASKED.items()]
    model.index(corpus, num_proc=None, **told)
    found = model.search(queries, top_k=4, num_proc=None, **told)
    assert {id: max(scores, key=scores.__getitem__) for id, scores in found.items()} == {
        f"q{n}": f"d{n}" for n in range(5)
    }
    assert all(len(scores) == 4 for scores in found.values())
    some = {id: ["d7", "d8", "d9"] for id in ASKED}
    again = model.search(queries, top_k=10, top_ranked=some, num_proc=None, **told)
    assert all(set(scores) == {"d7", "d8", "d9"} for scores in again.values())
    model.index(corpus[:2], num_proc=None, **told)
    assert set(model.search(queries, top_k=10, num_proc=None, **told)["q0"]) == {"d0", "d1"}
    model.close()


def test_a_retrieval_task_of_mteb_is_evaluated() -> None:
    mteb = pytest.importorskip("mteb")
    from datasets import Dataset
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.abstasks.task_metadata import TaskMetadata

    from incdsi.mteb import IncDSISearch

    class Tiny(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = TaskMetadata(
            name="TinyRetrieval",
            description="Thirty documents.",
            dataset={"path": "none", "revision": "1"},
            type="Retrieval",
            category="t2t",
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="ndcg_at_10",
        )

        def load_data(self, **_: Any) -> None:
            corpus = Dataset.from_list([{"id": one.id, "title": "", "text": one.text} for one in DOCUMENTS])
            queries = Dataset.from_list([{"id": id, "text": text} for id, text in ASKED.items()])
            judged = {f"q{n}": {f"d{n}": 1} for n in range(5)}
            split = {"corpus": corpus, "queries": queries, "relevant_docs": judged, "top_ranked": None}
            self.dataset = {"default": {"test": split}}
            self.data_loaded = True

    model = IncDSISearch(TOY)
    result = mteb.evaluate(model, [Tiny()], cache=None)
    assert result.task_results[0].get_score() > 0.9
    model.close()
