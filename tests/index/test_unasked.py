"""Where few documents were asked for, an index is also measured on documents as if nobody had asked for them."""

from __future__ import annotations

import numpy as np
import pytest
from index_samples import ToyEncoder, answers, asked_for, docs, vectors

from incdsi.index import Index, unasked
from incdsi.index.quality import Panel, Probe, probes
from incdsi.index.unasked import FEWEST, ONE_IN, Inquiry, inquiry, takings
from tests.engines import Place

pytestmark = pytest.mark.heavy
KNOWN, ALL, ENOUGH = 30, 60, 5


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unasked, "ENOUGH", ENOUGH)


def of(index: Index) -> Inquiry:
    engine = index.engine
    held_out = list(probes(engine.records(), engine.held_out()))
    return inquiry(engine.view(), engine.records, held_out, engine.view().settings)


def test_some_documents_are_measured_as_if_nobody_had_asked_for_them(place: Place) -> None:
    batch = docs(ALL)
    with Index.create(place("shop"), ToyEncoder(dimension=64)) as index:
        index.add_many(batch, asked_for(batch[:KNOWN], 4))
        before = answers(index), vectors(index)
        found = of(index)
        assert found.share == KNOWN / ALL
        assert len({probe.row for probe in found.unknown.asked}) == KNOWN // ONE_IN
        records = {record.row: record for record in index.engine.records()}
        for probe in found.unknown.asked:
            record = records[probe.row]
            assert probe.text in {query.text for query in record.queries if not query.generated}
            nearest, words = found.unknown.view.nearest(probe.embedding), found.unknown.view.lexical(probe.text)
            assert len(nearest.within(probe.row)) == 1 + sum(query.generated for query in record.queries)
            assert words.score(np.array([probe.row]))[0] == pytest.approx(words.score_of([record.document.content]))
        assert (answers(index), vectors(index)) == before  # nobody sees it
        assert index.verify() == []


def test_others_are_taken_in_turn_until_many_tell_and_go_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = docs(ALL)
    with Index.create(place("shop"), ToyEncoder(dimension=16)) as index:
        index.add_many(batch, asked_for(batch[:KNOWN], 1))
        all_told = of(index).unknown
        assert (len(all_told.asked), all_told.telling) == (KNOWN // ONE_IN, KNOWN)
        monkeypatch.setattr(unasked, "MANY", 1)
        once = of(index).unknown
        assert once.telling == len(once.asked)
        assert [probe.row for probe in all_told.asked] == [probe.row for probe in once.asked]
        rows, query = np.array([record.row for record in index.engine.records()]), once.asked[0]
        for scores in ("learned", "nearest"):
            back, never_taken = (getattr(one.view, scores)(query.embedding).score(rows) for one in (all_told, once))
            np.testing.assert_array_equal(back, never_taken)
        words, never = (one.view.lexical(query.text).score(rows) for one in (all_told, once))
        np.testing.assert_array_equal(words, never)


@pytest.mark.parametrize(
    ("known", "each", "sizes"), [(31, 1, [10, 10, 10]), (300, 1, [100, 100]), (600, 1, [200]), (60, 5, [20, 20])]
)
def test_no_document_is_taken_twice(known: int, each: int, sizes: list[int]) -> None:
    taken = takings(dict.fromkeys(range(known), each), known // ONE_IN)
    assert [len(rows) for rows in taken] == sizes
    assert len(set().union(*taken)) == sum(sizes)


def test_the_fewer_documents_people_asked_for_the_more_is_asked_for_each(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unasked, "MANY", 24)
    batch = docs(ALL)
    with Index.create(place("shop"), ToyEncoder(dimension=16)) as index:
        index.add_many(batch, asked_for(batch[:FEWEST], 5))
        found = of(index)
        assert (found.share, found.unknown.telling) == (FEWEST / ALL, 24)
        rows = [probe.row for probe in found.unknown.asked]
        assert [rows.count(row) for row in set(rows)] == [4, 4]
        assert found.evenly == [found.known]  # two documents say little about how sure to be


def test_documents_that_made_way_for_a_question_do_not_give_it_away(place: Place) -> None:
    batch = docs(ALL)
    with Index.create(place("shop"), ToyEncoder(dimension=16)) as index:
        index.add_many(batch, asked_for(batch[:KNOWN], 4))
        rows = {probe.row for probe in of(index).unknown.asked}
        shaped = [one for one in index.engine.records() if one.row not in rows and rows & {*one.constrained_by}]
        assert shaped
        view, there = of(index).unknown.view, index.engine.view()
        moved = [
            one.row
            for one in shaped
            if view.learned(one.anchor).score(np.array([one.row]))[0]
            != there.learned(one.anchor).score(np.array([one.row]))[0]
        ]
        assert moved


@pytest.mark.parametrize("known", [ALL, ALL - ENOUGH + 1, FEWEST - 1])
def test_held_out_queries_alone_tell_where_the_others_are_few_or_too_few_could(place: Place, known: int) -> None:
    batch = docs(ALL)
    with Index.create(place("shop"), ToyEncoder(dimension=16)) as index:
        index.add_many(batch, asked_for(batch[:known], 4))
        found = of(index)
        assert found.share == 1.0
        assert found.evenly == found.again == [found.known]


def test_probes_are_mixed_as_documents_are_and_all_of_them_choose_the_fusion() -> None:
    mixed = Inquiry(known=panel(0, 100), unknown=panel(1000, 200), share=0.2)
    assert [len(one.asked) for one in mixed.evenly] == [50, 200]
    assert weights(mixed) == pytest.approx([4 / 3, 2 / 3])
    mostly = Inquiry(known=panel(0, 100), unknown=panel(1000, 200), share=0.8)
    assert [len(one.asked) for one in mostly.evenly] == [100, 25]
    known, others = weights(mostly)
    assert 100 * known == pytest.approx(4 * 200 * others)


def test_alike_probes_count_once_each() -> None:
    assert weights(Inquiry(known=panel(0, 100), unknown=panel(1000, 100), share=0.5)) == [1.0, 1.0]


def test_confidence_is_by_the_known_alone_where_too_few_of_the_others_are_there() -> None:
    mixed = Inquiry(known=panel(0, 100), unknown=panel(1000, ENOUGH - 1), share=0.5)
    assert mixed.evenly == [mixed.known]


@pytest.mark.parametrize("known", [0, ENOUGH - 1])
def test_where_little_is_held_out_the_others_count_for_their_share(known: int) -> None:
    assert weights(Inquiry(known=panel(0, known), unknown=panel(1000, 200), share=0.1)) == [1.0, 0.5]
    assert weights(Inquiry(known=panel(0, known), unknown=panel(1000, 200), share=0.75)) == [1.0, 0.25]


def panel(first: int, count: int) -> Panel:
    return Panel(None, [Probe(text="", embedding=None, row=first + n, dense=0.0) for n in range(count)])  # type: ignore[arg-type]


def weights(mixed: Inquiry) -> list[float]:
    """How much each probe counts; all that there are do."""
    again = mixed.again
    assert [one.asked for one in again] == [mixed.known.asked, mixed.unknown.asked]
    return [one.weight for one in again]
