"""Haystack's own suites, over a folder and over a server; and what they do not ask."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.errors import FilterError
from haystack.testing import document_store as sync_suites
from haystack.testing import document_store_async as async_suites
from haystack_integrations.components.retrievers.incdsi import IncDSIRetriever
from haystack_integrations.document_stores.incdsi import IncDSIDocumentStore

from incdsi import Index, SearchIndex
from incdsi.client import RemoteIndex
from incdsi.errors import InvalidInput


class Written:
    """What the suites leave to each store: writing an id again fails unless a policy says otherwise."""

    def test_write_documents(self, document_store: IncDSIDocumentStore) -> None:
        documents = [Document(content="test doc 1"), Document(content="test doc 2")]
        assert document_store.write_documents(documents) == 2
        assert document_store.filter_documents() == documents
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(documents)

    async def test_write_documents_async(self, document_store: IncDSIDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(content="test doc 1")]) == 1


class TestFolder(
    Written,
    sync_suites.DocumentStoreBaseExtendedTests,
    sync_suites.CountDocumentsByFilterTest,
    sync_suites.CountUniqueMetadataByFilterTest,
    sync_suites.GetMetadataFieldsInfoTest,
    sync_suites.GetMetadataFieldMinMaxTest,
    sync_suites.GetMetadataFieldUniqueValuesTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.CountDocumentsAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
):
    """Every class there is."""

    @pytest.fixture
    def document_store(self, index: Index) -> IncDSIDocumentStore:
        return IncDSIDocumentStore(index)


class TestServer(Written, sync_suites.DocumentStoreBaseExtendedTests, async_suites.UpdateByFilterAsyncTest):
    @pytest.fixture
    def document_store(self, remote: SearchIndex) -> IncDSIDocumentStore:
        return IncDSIDocumentStore(remote)


@pytest.fixture
def store(index: Index) -> IncDSIDocumentStore:
    made = IncDSIDocumentStore(index)
    made.write_documents(
        [
            Document(id="boots", content="Waterproof hiking boots.", meta={"price": 90, "tags": ["new", "red"]}),
            Document(id="stove", content="A stove for the mountain.", meta={"price": 40}),
            Document(id="tent", content="A tent for snow and wind.", meta={"price": 200, "made": "2024-05-01"}),
        ]
    )
    return made


def test_a_document_comes_back_as_it_was(store: IncDSIDocumentStore) -> None:
    given = [
        Document(id="blob", blob=ByteStream(b"\x00\xff", mime_type="image/png"), meta={"page": {"from": 1}}),
        Document(id="none", content=None),
        Document(id="empty", content=""),
        Document(id="vectors", content="A lamp.", embedding=[0.1], sparse_embedding=SparseEmbedding([1], [0.5])),
    ]
    store.write_documents(given)
    assert store.filter_documents()[3:] == given


def test_the_last_of_an_id_overwrites_and_the_first_stays(store: IncDSIDocumentStore) -> None:
    twice = [Document(id="lamp", content="old"), Document(id="lamp", content="new")]
    assert store.write_documents(twice, DuplicatePolicy.SKIP) == 1
    assert store.index.get("lamp").text == "old"
    store.write_documents(twice, DuplicatePolicy.OVERWRITE)
    assert store.index.get("lamp").text == "new"


def test_what_was_taught_survives_an_overwrite(store: IncDSIDocumentStore) -> None:
    store.index.teach("something to sleep in", "tent")
    store.write_documents([Document(id="tent", content="A tent for the summer.")], DuplicatePolicy.OVERWRITE)
    assert store.index.queries("tent") == ["something to sleep in"]


@pytest.mark.parametrize(
    ("filters", "reason"),
    [
        ({"field": "content", "operator": "==", "value": "x"}, "metadata alone"),
        ({"field": "meta.page.from", "operator": "==", "value": 1}, "flatten it"),
        ({"field": "meta.price", "operator": "=", "value": 1}, "unknown operator '='"),
        ({"operator": "XOR", "conditions": []}, "unknown logical operator"),
        ({"operator": "AND", "conditions": []}, "empty list"),
    ],
)
def test_a_filter_that_cannot_be_applied_is_refused(store: IncDSIDocumentStore, filters: dict, reason: str) -> None:
    with pytest.raises(FilterError, match=reason):
        store.filter_documents(filters)
    with pytest.raises(FilterError, match=reason):
        IncDSIRetriever(store).run("boots", filters)


def test_deleting_by_an_empty_filter_deletes_nothing(store: IncDSIDocumentStore) -> None:
    with pytest.raises(InvalidInput, match="matches every document"):
        store.delete_by_filter({})
    assert store.count_documents() == 3


async def test_the_retriever_ranks_filters_and_scores(store: IncDSIDocumentStore) -> None:
    dear = {"field": "meta.price", "operator": ">", "value": 50}
    retriever = IncDSIRetriever(store, filters=dear, top_k=2)
    found = (await retriever.run_async("boots"))["documents"]
    assert [one.id for one in found] == ["boots", "tent"]
    assert found[0].score > found[1].score
    assert found[0].meta["tags"] == ["new", "red"]
    made = {"field": "made", "operator": ">=", "value": datetime(2024, 1, 1, tzinfo=UTC)}
    assert [one.id for one in retriever.run("boots", made)["documents"]] == ["tent"]
    with pytest.raises(InvalidInput, match="cannot tell how confident"):
        IncDSIRetriever(store, least=0.5).run("boots")


def test_a_pipeline_is_written_down_and_read_again(store: IncDSIDocumentStore, remote: RemoteIndex) -> None:
    pipeline = Pipeline()
    cheap = {"field": "meta.price", "operator": "<", "value": 100}
    retriever = IncDSIRetriever(IncDSIDocumentStore(remote.url), cheap, top_k=3, filter_policy=FilterPolicy.MERGE)
    pipeline.add_component("retriever", retriever)
    again = Pipeline.loads(pipeline.dumps())
    found = again.run({"retriever": {"query": "boots", "top_k": 1}})["retriever"]["documents"]
    assert [one.id for one in found] == ["boots"]
    for one in (pipeline, again):
        one.get_component("retriever").document_store.index.close()
    with pytest.raises(ValueError, match="folder or address"):
        store.to_dict()
