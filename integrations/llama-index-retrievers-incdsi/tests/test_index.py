"""LlamaIndex has no suite for indexes and retrievers; these are the promises of its base classes."""

from __future__ import annotations

import pytest
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters
from llama_index.indices.managed.incdsi import IncDSIIndex
from llama_index.retrievers.incdsi import IncDSIRetriever

from incdsi import Index, SearchIndex
from incdsi.errors import InvalidInput

TEXTS = {"boots": "Waterproof hiking boots.", "stove": "A stove for the mountain.", "tent": "A tent for snow and wind."}
SMALL = TokenTextSplitter(chunk_size=20, chunk_overlap=0, tokenizer=str.split)


def documents(**changed: str) -> list[Document]:
    texts = {**TEXTS, **changed}
    return [Document(id_=id, text=text, metadata={"price": len(id), "page": {"n": 1}}) for id, text in texts.items()]


@pytest.fixture(params=["folder", "server"])
def place(request: pytest.FixtureRequest, index: Index) -> SearchIndex:
    return index if request.param == "folder" else request.getfixturevalue("remote")


@pytest.fixture
def made(place: SearchIndex) -> IncDSIIndex:
    return IncDSIIndex.from_documents(documents(), index=place, transformations=[SMALL])


def ids(made: IncDSIIndex, query: str, **options: object) -> list[str | None]:
    return [one.node.ref_doc_id for one in made.as_retriever(**options).retrieve(query)]


def test_what_was_inserted_is_found_with_its_metadata_and_source(made: IncDSIIndex) -> None:
    best = made.as_retriever(similarity_top_k=1).retrieve("hiking boots")[0]
    assert (best.node.ref_doc_id, best.text) == ("boots", TEXTS["boots"])
    assert best.node.metadata == {"price": 5, "page": {"n": 1}}
    assert best.score is not None


async def test_insert_delete_and_update_show_at_once(made: IncDSIIndex) -> None:
    made.insert(Document(id_="lamp", text="A lamp for the night."))
    assert ids(made, "lamp night")[0] == "lamp"
    await made.adelete_ref_doc("lamp")
    assert "lamp" not in ids(made, "lamp night")
    made.delete_ref_doc("no such")
    await made.aupdate_ref_doc(Document(id_="tent", text="A hammock under the star."))
    assert (ids(made, "hammock star")[0], len(made.index)) == ("tent", 3)
    made.delete_nodes([made.as_retriever().retrieve("hammock")[0].node_id])
    assert set(made.ref_doc_info) == {"boots", "stove"}


def test_an_update_keeps_what_was_taught(made: IncDSIIndex) -> None:
    made.teach("something to sleep in", made.ref_doc_info["tent"].node_ids[0])
    long = "A tent for snow and wind in the mountain at night. It has a lamp and a map and a rope of nylon."
    made.update_ref_doc(Document(id_="tent", text=long))
    first, *rest = made.ref_doc_info["tent"].node_ids
    assert rest
    assert made.index.queries(first) == ["something to sleep in"]
    made.update_ref_doc(Document(id_="tent", text="A tent."))
    assert ids(made, "something to sleep in")[0] == "tent"


def test_refreshing_touches_only_what_changed_also_after_reopening(made: IncDSIIndex, place: SearchIndex) -> None:
    again = IncDSIIndex(place, transformations=[SMALL])
    version = place.version
    assert again.refresh_ref_docs(documents()) == [False, False, False]
    assert place.version == version
    assert again.refresh_ref_docs(documents(stove="A stove of steel.")) == [False, True, False]
    assert ids(again, "steel", similarity_top_k=1) == ["stove"]
    assert len(place) == 3


@pytest.mark.parametrize(
    ("operator", "value", "found"),
    [
        (FilterOperator.EQ, 5, {"boots", "stove"}),
        (FilterOperator.NE, 5, {"tent"}),
        (FilterOperator.LT, 5, {"tent"}),
        (FilterOperator.IN, [4], {"tent"}),
        (FilterOperator.NIN, [4], {"boots", "stove"}),
        (FilterOperator.IS_EMPTY, None, set()),
    ],
)
def test_filters_narrow_what_is_found(
    made: IncDSIIndex, operator: FilterOperator, value: object, found: set[str]
) -> None:
    one = MetadataFilter(key="price", operator=operator, value=value)  # type: ignore[arg-type]
    assert set(ids(made, "boots", filters=MetadataFilters(filters=[one]))) == found
    several = MetadataFilters(filters=[one, MetadataFilters(filters=[one])], condition=FilterCondition.NOT)
    assert set(ids(made, "boots", filters=several)) == set(TEXTS) - found


def test_a_filter_that_incdsi_does_not_have_is_refused() -> None:
    one = MetadataFilter(key="price", operator=FilterOperator.TEXT_MATCH_INSENSITIVE, value="x")
    with pytest.raises(ValueError, match="no filter 'text_match_insensitive'"):
        IncDSIRetriever(None, filters=MetadataFilters(filters=[one]))  # type: ignore[arg-type]


async def test_a_retriever_reads_what_something_else_put_there(place: SearchIndex) -> None:
    place.add({"id": "rope", "title": "Rope", "text": "A rope of nylon.", "lang": "en"})
    found = await IncDSIRetriever(place).aretrieve("nylon rope")
    assert found[0].node == TextNode(id_="rope", text="A rope of nylon.", metadata={"lang": "en", "title": "Rope"})
    with pytest.raises(InvalidInput, match="cannot tell how confident"):
        IncDSIRetriever(place, least=0.5).retrieve("rope")
