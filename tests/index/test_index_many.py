"""Many searches at once find what each finds alone, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from incdsi.errors import InvalidInput, TooLarge
from incdsi.index import Index
from incdsi.rows import local
from tests.index.index_samples import MODES, PROBES, TOY, WORDS, docs

QUERIES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), max_size=40)
FILTERS = st.sampled_from([None, {"lang": "en"}, {"number": {"lt": 3}}, {"lang": "none"}])


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    with Index.create(tmp_path_factory.mktemp("many") / "index", encoder=TOY) as index:
        index.add_many(docs(60))
        index.delete(["d7", "d30"])
        yield index


@given(QUERIES, st.integers(1, 70), FILTERS, st.sampled_from(MODES))
@settings(max_examples=60, deadline=None)
def test_together_they_find_what_each_finds_alone(filled: Index, texts, k, where, mode) -> None:
    assert filled.search_many(texts, k, where, mode) == [filled.search(text, k, where, mode) for text in texts]


def test_however_many_share_a_pass(filled: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*PROBES, *WORDS]
    wanted = filled.search_many(texts)
    for room in (1, 200, 1 << 20):
        monkeypatch.setattr(local, "ROOM", room)
        assert filled.search_many(texts) == wanted


def test_all_are_of_one_moment(filled: Index) -> None:
    def progress(done: int, total: int) -> None:
        if done == 1:
            filled.add_many(docs(1, start=900))

    first, second = filled.search_many(["river"] * 2, 90, mode="learned", progress=progress)
    try:
        assert second == first
        assert len(filled.search("river", 90, mode="learned")) == len(first) + 1
    finally:
        filled.delete("d900")


def test_how_much_may_be_read_counts_for_all_of_them(filled: Index) -> None:
    texts = ["river", "boots"]
    size = sum(len(hit.document.text.encode()) for hits in filled.search_many(texts, 5) for hit in hits)
    assert len(filled.search_many(texts, 5, most_bytes=4 * size)) == 2
    with pytest.raises(TooLarge):
        filled.search_many(texts, 5, most_bytes=size - 1)


def test_one_bad_query_refuses_them_all(filled: Index) -> None:
    with pytest.raises(InvalidInput, match="at least one character"):
        filled.search_many(["river", " "], progress=lambda done, total: pytest.fail("one was searched"))


def test_progress_tells_how_many_are_done(filled: Index) -> None:
    told: list[tuple[int, int]] = []
    filled.search_many(["river", "boots"], progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]
