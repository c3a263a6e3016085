"""LangChain's own suites, over a folder and over a server; and what they do not ask."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.indexing import InMemoryRecordManager
from langchain_core.indexing import index as index_documents
from langchain_incdsi import IncDSIRetriever, IncDSIVectorStore, teach_tool
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from incdsi import Index, SearchIndex
from incdsi.errors import InvalidInput
from tests.index.index_samples import asked_for, docs

TEXTS = ["Waterproof hiking boots.", "A stove for the mountain.", "A tent for snow and wind.", "A rope of nylon."]


class TestFolder(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, index: Index) -> IncDSIVectorStore:
        return IncDSIVectorStore(index)


class TestServer(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, remote: SearchIndex) -> IncDSIVectorStore:
        return IncDSIVectorStore(remote)


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _filled(self, index: Index) -> None:
        IncDSIVectorStore(index).add_texts(TEXTS)
        self.index = index

    @property
    def retriever_constructor(self) -> type[IncDSIRetriever]:
        return IncDSIRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"index": self.index, "k": 4}

    @property
    def retriever_query_example(self) -> str:
        return "boots for a river"


@pytest.fixture
def store(index: Index) -> IncDSIVectorStore:
    made = IncDSIVectorStore(index)
    made.add_texts(
        TEXTS, [{"lang": "en", "price": price} for price in range(4)], ids=["boots", "stove", "tent", "rope"]
    )
    return made


def test_metadata_comes_back_as_it_was_nested_or_not(store: IncDSIVectorStore) -> None:
    metadata = {"title": "Lamp", "tags": ["new"], "loc": {"lines": {"from": 1}}, "rows": [[1, 2]], "none": None}
    store.add_documents([Document(id="lamp", page_content="A lamp.", metadata=metadata)])
    assert store.get_by_ids(["lamp"])[0].metadata == metadata
    assert store.index.get("lamp").title == "Lamp"
    assert store.similarity_search("lamp", k=5, filter={"title": "Lamp"})[0].id == "lamp"


async def test_filters_narrow_what_is_found_and_a_misspelt_one_is_refused(store: IncDSIVectorStore) -> None:
    assert {one.id for one in store.similarity_search("boots", k=9, filter={"price": {"gte": 2}})} == {"tent", "rope"}
    found = await store.asimilarity_search("boots", k=9, filter={"price": 1})
    assert [one.id for one in found] == ["stove"]
    with pytest.raises(TypeError, match="unknown option 'where'"):
        store.similarity_search("boots", where={"price": 1})


def test_relevance_is_refused_while_the_index_cannot_tell_it(store: IncDSIVectorStore) -> None:
    with pytest.raises(InvalidInput, match="cannot tell how confident it is yet"):
        store.similarity_search_with_relevance_scores("boots")


async def test_relevance_is_the_confidence_once_the_index_has_one(index: Index) -> None:
    store, documents = IncDSIVectorStore(index), docs(150)
    asked = asked_for(documents, 4)
    store.add_texts([one.text for one in documents], ids=[one.id for one in documents], queries=asked)
    scored = await store.asimilarity_search_with_relevance_scores("river and boots", k=3)
    assert [score for _, score in scored] == [hit.confidence for hit in index.search("river and boots", 3)]
    assert all(0 <= score <= 1 for _, score in scored)
    retriever = store.as_retriever(search_type="similarity_score_threshold", search_kwargs={"score_threshold": 1.0})
    assert len(retriever.invoke("river and boots")) <= 4


async def test_a_taught_query_finds_its_document(store: IncDSIVectorStore, index: Index) -> None:
    tool = teach_tool(index)
    assert set(tool.args) == {"query", "document_id"}
    assert await tool.ainvoke({"query": "something to sleep in", "document_id": "tent"})
    assert store.similarity_search("something to sleep in", k=1)[0].id == "tent"
    assert "'tnt'" in tool.invoke({"query": "sleep", "document_id": "tnt"})


def test_langchains_indexing_writes_skips_and_cleans_up(store: IncDSIVectorStore) -> None:
    records = InMemoryRecordManager("shop")
    records.create_schema()
    first = [Document(page_content=text, metadata={"source": str(n)}) for n, text in enumerate(TEXTS)]
    assert index_documents(first, records, store, cleanup="full", key_encoder="sha256")["num_added"] == 4
    done = index_documents(first[:3], records, store, cleanup="full", key_encoder="sha256")
    assert (done["num_skipped"], done["num_deleted"]) == (3, 1)
    assert len(store.index) == 4 + 3


def test_deleting_takes_ids_or_a_filter(store: IncDSIVectorStore) -> None:
    assert store.delete(["rope", "no such"])
    store.delete(filter={"price": {"lt": 2}})
    assert [one.id for one in store.index.documents()] == ["tent"]
    with pytest.raises(InvalidInput, match="either an id or a filter"):
        store.delete()


def test_a_store_is_made_of_texts_in_a_new_folder_or_an_old_one(index: Index) -> None:
    store = IncDSIVectorStore.from_texts(TEXTS[:1], None, ids=["boots"], index=index)
    assert store.as_retriever(search_kwargs={"k": 1}).invoke("boots")[0].id == "boots"
    with pytest.raises(ValueError, match="its own encoder"):
        IncDSIVectorStore.from_texts(TEXTS, object(), index=index)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="say where"):
        IncDSIVectorStore.from_texts(TEXTS, None)
