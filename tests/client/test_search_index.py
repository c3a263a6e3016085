"""One suite of behaviours over everything that is a SearchIndex: a folder, a server, and both by asyncio."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from incdsi import AsyncIndex, SearchIndex
from incdsi.clicks import Click, Outcome
from incdsi.client import AsyncRemoteIndex, RemoteIndex
from incdsi.client.connecting import FOLDER_ONLY
from incdsi.documents import Document, Taught
from incdsi.errors import (
    DuplicateDocument,
    InvalidDocument,
    InvalidInput,
    NeedsFolder,
    UnknownDocument,
    VersionConflict,
)
from incdsi.index import Index
from incdsi.solver import Status
from tests.client.blocking import Blocking
from tests.client.conftest import Serve
from tests.index.index_samples import asked, asked_for, docs
from tests.server.servers import make

AWAITED = {"__len__": "count", "__contains__": "contains", "__enter__": "__aenter__", "__exit__": "__aexit__"}
IMPOSSIBLE = ("", "x" * 2000, "\ud800")  # ids no document can have
CONSTRUCTORS = {"build", "create", "open"}


@pytest.fixture(params=["folder", "server", "async folder", "async server"])
def index(request: pytest.FixtureRequest, tmp_path: Path, serve: Serve) -> Iterator[SearchIndex]:
    if request.param == "folder":
        with make(tmp_path / "here") as made:
            yield made
    elif request.param == "server":
        with Index.open(serve()) as opened:
            yield opened
    elif request.param == "async folder":
        with Blocking(AsyncIndex(make(tmp_path / "here"))) as blocking:
            yield blocking
    else:
        with Blocking(AsyncRemoteIndex(serve())) as blocking:
            yield blocking


def test_adding_getting_and_counting(index: SearchIndex) -> None:
    some = docs(4)
    addition = index.add(some[0], asked("d0"))
    assert (addition.document_id, addition.conflicts) == ("d0", ())
    assert {"encode", "solve", "commit"} <= set(addition.seconds)
    told: list[tuple[int, int]] = []
    additions = index.add_many(some[1:], asked_for(some[1:]), progress=lambda *done: told.append(done))
    assert [one.document_id for one in additions] == ["d1", "d2", "d3"]
    assert told[-1] == (3, 3)
    assert len(index) == 4
    assert "d2" in index
    assert "gone" not in index
    assert 7 not in index
    assert index.get("d3") == some[3]
    assert index.queries("d0") == asked("d0")
    assert sorted(one.id for one in index.documents()) == ["d0", "d1", "d2", "d3"]


def test_lists_dates_and_numpys_numbers_are_kept_and_found_alike(index: SearchIndex) -> None:
    noon = datetime(2024, 5, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    index.add(Document(id="a", text="boots", metadata={"tags": ["red", 7], "made": noon, "size": np.int64(42)}))
    index.add(Document(id="b", text="boots again", metadata={"tags": [], "made": date(2024, 5, 1)}))
    assert index.get("a").metadata == {"tags": ("red", 7), "made": "2024-05-01T12:00:00+00:00", "size": 42}
    for where, found in (
        ({"made": {"gte": noon}}, ["a"]),
        ({"made": {"lt": date(2024, 5, 2)}}, ["a", "b"]),
        ({"tags": {"$all": (7, "red")}}, ["a"]),
        ({"tags": {"contains": "red"}, "size": {"in": {np.int32(42)}}}, ["a"]),
        ({"size": {"exists": False}}, ["b"]),
    ):
        assert sorted(hit.document_id for hit in index.search("boots", where=where)) == found


def test_documents_are_listed_by_filter_by_id_and_by_page(index: SearchIndex) -> None:
    some = docs(7)
    index.add_many(some)
    index.update(replace(some[2], metadata={"lang": "fr"}))  # keeps its place
    assert [one.id for one in index.documents()] == [one.id for one in some]
    assert [one.id for one in index.documents({"lang": "de"})] == ["d0", "d3", "d6"]
    assert [one.id for one in index.documents(ids=["d5", "d1"])] == ["d1", "d5"]
    assert [one.id for one in index.documents({"lang": "de"}, ids=["d3", "d4"])] == ["d3"]
    assert [one.id for one in index.documents(where={"lang": "en"}, limit=2, after="d1")] == ["d4", "d5"]
    assert list(index.documents(ids=[])) == []
    assert list(index.documents(limit=1)) == [some[0]]
    pages, after = [], None
    while page := [one.id for one in index.documents(limit=3, after=after)]:
        pages.append(page)
        after = page[-1]
    assert pages == [["d0", "d1", "d2"], ["d3", "d4", "d5"], ["d6"]]
    assert [one.id for one in index.documents(ids=["gone", "d1", *IMPOSSIBLE, "d1"], missing_ok=True)] == ["d1"]
    assert [one.id for one in index.documents({"lang": "de"}, ids=["d3", "gone"], missing_ok=True)] == ["d3"]
    for unknown in ({"ids": ["d1", "gone"]}, {"after": "gone"}, {"ids": ["x" * 2000]}):
        with pytest.raises(UnknownDocument):
            list(index.documents(**unknown))
    for bad in ({"where": {"a": {"like": 1}}}, {"limit": 0}, {"ids": "d1"}):
        with pytest.raises(InvalidInput):
            list(index.documents(**bad))


def test_documents_are_counted_and_got_together(index: SearchIndex) -> None:
    index.add_many(docs(7))
    assert (index.count(), index.count({}), index.count({"lang": "de"}), index.count({"lang": "fr"})) == (7, 7, 3, 0)
    assert index.get_many(["d5", "d1", "d5"]) == [index.get("d5"), index.get("d1"), index.get("d5")]
    assert index.get_many([]) == []
    with pytest.raises(UnknownDocument, match="gone"):
        index.get_many(["d1", "gone"])
    with pytest.raises(InvalidInput, match="list of ids"):
        index.get_many("d1")


def test_many_are_updated_or_added_together(index: SearchIndex) -> None:
    some = docs(6)
    index.add_many(some[:3], asked_for(some[:3]))
    changed = [replace(one, metadata={"new": True}) for one in some]
    told: list[tuple[int, int]] = []
    additions = index.upsert_many(changed[::-1], {"d5": ["where to go"]}, progress=lambda *done: told.append(done))
    assert [one.document_id for one in additions] == [one.id for one in changed[::-1]]
    assert [one.status for one in additions[3:]] == ["kept"] * 3
    assert told[-1] == (6, 6)
    assert index.get_many([one.id for one in changed]) == changed
    assert (index.queries("d0"), index.queries("d5")) == (asked("d0"), ["where to go"])
    assert index.upsert_many([]) == []
    with pytest.raises(DuplicateDocument, match="twice in the batch"):
        index.upsert_many([some[0], some[0]])
    assert index.count({"new": True}) == 6
    before = index.version
    index.upsert_many([*some[4:], Document(id="x", text="rope")], if_version=before, whole=True)
    assert (index.count({"new": True}), "x" in index) == (4, True)
    with pytest.raises(VersionConflict):
        index.upsert_many(some, if_version=before)


def test_a_dict_can_stand_for_a_document(index: SearchIndex) -> None:
    index.add({"id": "a", "text": "boots", "lang": "en"}, ["dry feet"])
    index.add_many([{"id": "b", "title": "Tent", "metadata": {"tags": ["new"]}}])
    index.update({"id": "a", "text": "more boots"})
    index.upsert({"id": "c", "text": "stove"})
    index.upsert_many([{"id": "c", "text": "stove", "n": 1}])
    assert list(index.documents()) == [
        Document(id="a", text="more boots"),
        Document(id="b", text="", title="Tent", metadata={"tags": ["new"]}),
        Document(id="c", text="stove", metadata={"n": 1}),
    ]
    for change in (index.add, index.update, index.upsert, lambda one: index.add_many([one])):
        with pytest.raises(InvalidDocument, match="no 'id'"):
            change({"text": "x"})


def test_a_document_added_again_with_its_queries_is_taught_again(index: SearchIndex) -> None:
    index.add_many(docs(6), asked_for(docs(6)))
    index.teach("where the bears are", "d4")
    document, queries = index.get("d4"), index.queries("d4")
    assert [text for text in queries if isinstance(text, Taught)] == ["where the bears are"]
    for again in (index.add, index.upsert, lambda document, queries: index.add_many([document], {"d4": queries})):
        index.delete("d4")
        again(document, queries)
        assert [(text, type(text)) for text in index.queries("d4")] == [(text, type(text)) for text in queries]


def test_an_addition_explains_its_status(index: SearchIndex) -> None:
    text = {"text": "the sea is deep"}
    alone = index.add(Document(id="a", **text), ["who won the sea"])
    assert (alone.status, alone.explanation) == ("solved", Status.SOLVED.value)
    twin = index.add(Document(id="b", **text), ["who won the sea"])
    assert (twin.status, twin.explanation) == ("compromised", Status.COMPROMISED.value)
    taught = index.teach("a quiet place", "a")
    assert taught.explanation == Status[taught.status.upper()].value


def test_searching(index: SearchIndex) -> None:
    index.add_many(docs(12), asked_for(docs(12)))
    hits = index.search("waterproof boots", k=5, where={"lang": "en", "number": {"in": (1, 2, 4, 5)}})
    assert [hit.rank for hit in hits] == [1, 2, 3, 4]
    assert all(hit.document == docs(12)[int(hit.document_id[1:])] for hit in hits)
    assert all(hit.score == pytest.approx(hit.learned + hit.nearest + hit.lexical, rel=1e-5) for hit in hits)
    assert index.search("tent", mode="lexical")[0].learned is None
    assert index.search("half \ud83d a pair")


def test_changing_teaching_and_deleting(index: SearchIndex) -> None:
    index.add_many(docs(6), asked_for(docs(6)))
    index.update(Document(id="d0", text="a new text", title="New"), ["and a query"])
    assert index.get("d0").title == "New"
    assert index.queries("d0") == [*asked("d0"), "and a query"]
    index.upsert(Document(id="d1", text="another"))
    index.upsert(Document(id="../x?", text="an id like a path"))
    assert index.get("../x?").text == "an id like a path"
    assert index.teach("where the bears are", "d4").document_id == "d4"
    assert index.search("where the bears are")[0].document_id == "d4"
    assert index.delete("d4") == 1
    assert index.delete(where={"even": True}) == 1  # d2: the others lost their metadata
    assert len(index) == 5


def test_learning_from_clicks(index: SearchIndex) -> None:
    index.add_many(docs(4))
    clicks = [Click("Dry feet", "d1", 2), Click("dry feet", "d2"), Click("a lamp", "gone", 5), Click("snow", "d3")]
    plan = index.learn(clicks, dry_run=True)
    assert index.queries("d1") == []
    learned = index.learn(clicks)
    assert {(one.query, one.document_id): one.outcome for one in learned.lessons} == {
        ("Dry feet", "d1"): Outcome.LEARNED,
        ("Dry feet", "d2"): Outcome.TOO_FEW,
        ("a lamp", "gone"): Outcome.UNKNOWN_DOCUMENT,
        ("snow", "d3"): Outcome.TOO_FEW,
    }
    assert plan.lessons == learned.lessons
    assert index.queries("d1") == ["Dry feet"]
    again = index.learn(clicks)
    assert (again.changed, again.version) == (False, learned.version)
    assert index.learn([]).lessons == ()
    with pytest.raises(InvalidInput, match="share of clicks"):
        index.learn(clicks, share=2)


def test_deleting_several_at_once(index: SearchIndex) -> None:
    index.add_many(docs(4))
    assert index.delete(["d0", "d2"]) == 2
    assert [document.id for document in index.documents()] == ["d1", "d3"]
    with pytest.raises(UnknownDocument):
        index.delete(iter(["d1", "nobody"]))
    assert len(index) == 2


def test_versions(index: SearchIndex) -> None:
    before = index.version
    index.add(docs(1)[0], if_version=before)
    assert index.version > before
    for change in (
        lambda: index.add(docs(2)[1], if_version=before),
        lambda: index.update(docs(1)[0], if_version=before),
        lambda: index.upsert(docs(1)[0], if_version=before),
        lambda: index.delete("d0", if_version=before),
        lambda: index.teach("x", "d0", if_version=before),
    ):
        with pytest.raises(VersionConflict):
            change()


def test_the_same_errors(index: SearchIndex) -> None:
    index.add(docs(1)[0])
    for error, change in (
        (DuplicateDocument, lambda: index.add(docs(1)[0])),
        (DuplicateDocument, lambda: index.add_many([docs(2)[1], docs(1)[0]])),
        (UnknownDocument, lambda: index.get("gone")),
        (UnknownDocument, lambda: index.queries("gone")),
        (UnknownDocument, lambda: index.update(Document(id="gone", text="x"))),
        (UnknownDocument, lambda: index.delete("gone")),
        (UnknownDocument, lambda: index.teach("x", "gone")),
        (UnknownDocument, lambda: index.add_many([Document(id="s", text="x")], {"gone": ["a query"]})),
        *((UnknownDocument, lambda id=id: index.get(id)) for id in IMPOSSIBLE),
        *((UnknownDocument, lambda id=id: index.queries(id)) for id in IMPOSSIBLE),
        *((UnknownDocument, lambda id=id: index.delete(id)) for id in IMPOSSIBLE),
        *((UnknownDocument, lambda id=id: index.delete(["d0", id])) for id in (*IMPOSSIBLE, 7)),
        *((UnknownDocument, lambda id=id: index.teach("x", id)) for id in IMPOSSIBLE),
        (InvalidInput, lambda: index.search("")),
        *((InvalidInput, lambda k=k: index.search("x", k=k)) for k in (0, "3", 3.0, True)),
        (InvalidInput, lambda: index.search(7)),
        (InvalidInput, lambda: index.search("x", mode="best")),
        (InvalidInput, lambda: index.search("x", where={"a": {"near": 1}})),
        (InvalidInput, lambda: index.search("x", where={"a": float("nan")})),
        (InvalidInput, lambda: index.search("x", where={1: "a"})),
        *((InvalidInput, lambda least=least: index.search("x", least=least)) for least in (0.5, -1, 2, "0.5", True)),
        (InvalidInput, lambda: index.search_many(["x"], least=0.5)),
        (InvalidInput, lambda: index.teach(" ", "d0")),
        (InvalidInput, lambda: index.delete()),
        (InvalidDocument, lambda: index.add(Document(id="s", text="\ud800"))),
        (InvalidDocument, lambda: index.upsert(Document(id="\ud800", text="x"))),
        (InvalidDocument, lambda: index.teach("half \ud83d a pair", "d0")),
        (InvalidInput, lambda: index.add(Document(id="q", text="x"), "a text instead of a list")),
    ):
        with pytest.raises(error):
            change()
    assert len(index) == 1
    assert not any(id in index for id in (*IMPOSSIBLE, 7, None))


def test_all_documents_with_their_queries(index: SearchIndex) -> None:
    index.add_many(docs(3), {"d1": asked("d1")})
    index.teach("where the bears are", "d2")
    found = {document.id: (document, queries) for document, queries in index.with_queries()}
    assert found == {
        "d0": (docs(3)[0], []),
        "d1": (docs(3)[1], asked("d1")),
        "d2": (docs(3)[2], ["where the bears are"]),
    }
    assert [type(text) for text in found["d2"][1]] == [Taught]


def test_searching_for_many_texts_is_searching_for_each(index: SearchIndex) -> None:
    index.add_many(docs(12), asked_for(docs(12)))
    texts = ["waterproof boots", "half \ud83d a pair", "waterproof boots"]
    found = index.search_many(texts, 3, {"lang": "en"}, "learned")
    assert found == [index.search(text, 3, {"lang": "en"}, "learned") for text in texts]


def test_nothing_to_do_is_done(index: SearchIndex) -> None:
    assert index.add_many([]) == []
    assert index.search_many([]) == []
    assert index.delete([]) == 0


def test_whole_is_all_or_none(index: SearchIndex) -> None:
    some = [Document(id=str(number), text=f"rope {number}") for number in range(300)]
    index.add(some[-1])
    with pytest.raises(DuplicateDocument):
        index.add_many(some, whole=True)
    assert len(index) == 1
    before = index.version
    assert len(index.add_many(some[:-1], if_version=before, whole=True)) == 299
    with pytest.raises(VersionConflict):
        index.add_many([Document(id="new", text="new")], if_version=before)


def test_info(index: SearchIndex) -> None:
    index.add_many(docs(3), asked_for(docs(3)))
    info = index.info()
    assert (info.documents, info.dimension, info.version) == (3, 24, index.version)
    assert info.hyperparameters.weights.retrieve == 0.3
    assert info.quality == {}


# The list of verbs


def verbs(kind: type) -> dict[str, Any]:
    """Public methods and properties, and what `len`, `in` and `with` use."""
    special = {*AWAITED.keys(), *AWAITED.values()}
    named = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_") or name in special}
    return {name: one for name, one in named.items() if callable(one) or isinstance(one, property)}


def test_an_index_has_at_most_thirty_one_public_methods() -> None:
    assert len([name for name in verbs(Index) if name not in AWAITED]) <= 31


def test_what_an_index_can_do_a_server_can_or_says_that_it_cannot() -> None:
    assert verbs(Index).keys() == verbs(SearchIndex).keys() | CONSTRUCTORS | set(FOLDER_ONLY)
    assert verbs(RemoteIndex).keys() == verbs(SearchIndex).keys()
    assert verbs(AsyncIndex).keys() == {AWAITED.get(name, name) for name in verbs(Index)}
    assert verbs(AsyncRemoteIndex).keys() == {AWAITED.get(name, name) for name in verbs(SearchIndex)}


@pytest.mark.parametrize("name", FOLDER_ONLY)
def test_what_a_server_cannot_do_is_one_sentence(name: str) -> None:
    for kind in (RemoteIndex, AsyncRemoteIndex):
        with pytest.raises(NeedsFolder, match=f"^{name} is not available over HTTP; open the index's folder"):
            getattr(kind("http://127.0.0.1:1"), name)
        assert not hasattr(kind("http://127.0.0.1:1"), name)


@pytest.mark.parametrize("name", [name for name, one in verbs(SearchIndex).items() if callable(one)])
def test_a_verb_takes_the_same_arguments_everywhere(name: str) -> None:
    wanted = arguments(getattr(SearchIndex, name))
    assert arguments(getattr(RemoteIndex, name)) == wanted
    awaited = arguments(getattr(AsyncRemoteIndex, AWAITED.get(name, name)))
    assert awaited == wanted or (name == "__len__" and awaited == arguments(SearchIndex.count))
    assert arguments(getattr(Index, name)).items() >= wanted.items()


@pytest.mark.parametrize("name", [name for name, one in verbs(Index).items() if callable(one)])
def test_asyncio_takes_the_arguments_of_an_index(name: str) -> None:
    awaited = arguments(getattr(AsyncIndex, AWAITED.get(name, name)))
    assert awaited == arguments(getattr(Index, name)) or (name == "__len__" and awaited == arguments(Index.count))


def arguments(verb: Callable[..., Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (one.kind, one.default) for name, one in inspect.signature(verb).parameters.items()}


def test_a_long_document_is_found_once_by_its_best_passages(index: SearchIndex) -> None:
    sections = (f"## About {word}\n" + f"The {word} of this boot is {word}. " * 40 for word in ("wax", "lace", "sole"))
    manual = Document(id="manual", title="Boots", text="\n".join(sections))
    index.add_many([manual, *docs(3)])
    (hit,) = (hit for hit in index.search("lace", 9, passages=2) if hit.document_id == "manual")
    assert hit.document == manual
    assert [passage.headings for passage in hit.passages] == [("About lace",)] * 2
    assert hit.passage is not None
    assert hit.passage.text == manual.text[hit.passage.start : hit.passage.end]
    assert "<lace>" in hit.snippet.marked("<", ">")
    assert index.search_many(["lace"], 9, passages=2) == [index.search("lace", 9, passages=2)]
    with pytest.raises(InvalidInput):
        index.search("lace", passages=0)
