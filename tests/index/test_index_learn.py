"""An index learns from clicks what passes the threshold, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from index_samples import ToyEncoder, answers, doc, docs, record
from test_index_confidence import questions

from incdsi.clicks import Click, Outcome
from incdsi.errors import InvalidInput
from incdsi.gaps import find_gaps
from incdsi.index import Index

CLICKS = [Click("Dry  Feet", "d1", 3), Click("warm hands", "d2"), Click("dry feet", "d3"), Click("lamp", "gone", 4)]


def queries(index: Index, id: str) -> list[str]:
    return [query.text for query in record(index, id).queries if not query.generated]


def test_what_passes_is_attached_and_the_rest_is_told(index: Index) -> None:
    index.add_many(docs(5))
    told: list[tuple[int, int]] = []
    learned = index.learn(CLICKS, progress=lambda *done: told.append(done))
    assert {(one.query, one.document_id): one.outcome for one in learned.lessons} == {
        ("Dry Feet", "d1"): Outcome.LEARNED,
        ("Dry Feet", "d3"): Outcome.TOO_FEW,
        ("warm hands", "d2"): Outcome.TOO_FEW,
        ("lamp", "gone"): Outcome.UNKNOWN_DOCUMENT,
    }
    assert queries(index, "d1") == ["Dry Feet"]
    assert queries(index, "d2") == []
    assert index.search("dry feet")[0].document_id == "d1"
    assert (learned.changed, learned.version) == (True, index.version)
    assert told == [(1, 1)]


def test_the_same_clicks_again_change_nothing_and_say_so(index: Index) -> None:
    index.add_many(docs(5), {"d4": ["snow", "rain"]})
    index.learn(CLICKS, least=1, share=0.1)
    before, version = answers(index), index.version
    again = index.learn([*CLICKS, Click("SNOW", "d4", 5)], least=1, share=0.1)
    assert (again.changed, index.version, again.version) == (False, version, version)
    assert {one.outcome for one in again.lessons} == {Outcome.KNOWN, Outcome.UNKNOWN_DOCUMENT}
    assert answers(index) == before


def test_a_dry_run_says_the_same_and_changes_nothing(index: Index) -> None:
    index.add_many(docs(5))
    before, version = answers(index), index.version
    plan = index.learn(CLICKS, dry_run=True)
    assert (plan.dry_run, plan.changed, index.version) == (True, False, version)
    assert answers(index) == before
    assert index.learn(CLICKS).lessons == plan.lessons


def test_what_a_person_taught_outweighs_clicks(index: Index) -> None:
    index.add_many(docs(5))
    index.teach("dry feet", "d3")
    learned = index.learn(CLICKS)
    assert learned.count(Outcome.TAUGHT_OTHERWISE) == 1
    assert learned.count(Outcome.LEARNED) == 0
    assert index.search("dry feet")[0].document_id == "d3"


def test_no_clicks_and_no_threshold_are_refused_or_nothing(index: Index) -> None:
    index.add(doc("a"))
    version = index.version
    assert index.learn([]).lessons == ()
    assert index.version == version
    with pytest.raises(InvalidInput, match="only a server keeps a log of clicks"):
        index.learn(None)
    with pytest.raises(InvalidInput, match="least number of clicks"):
        index.learn(CLICKS, least=0)
    with pytest.raises(InvalidInput, match="share of clicks"):
        index.learn(CLICKS, share=60)


def test_gaps_are_judged_by_words_until_there_is_confidence(index: Index) -> None:
    index.add_many(docs(5))
    found = find_gaps(index, ["xylophone", "boots", "Xylophone ", "  "])
    assert (found.judged_by, found.queries) == ("words", 2)
    (gap,) = found.gaps
    assert (gap.query, gap.times, gap.reason, gap.confidence) == ("xylophone", 2, "no word in common", None)
    assert len(gap.candidates) == 3
    assert find_gaps(index, []).gaps == ()


def test_in_an_empty_index_everything_is_a_gap(index: Index) -> None:
    assert [gap.reason for gap in find_gaps(index, ["boots"]).gaps] == ["nothing found"]


def test_gaps_are_what_is_right_less_probably_than_asked_for(tmp_path: Path) -> None:
    batch, encoder = docs(150), ToyEncoder(dimension=48)
    asked = ["river d3 3", "a thing of snow", "a thing of snow", "boots or tent"]
    with Index.create(tmp_path / "shop", encoder) as index:
        index.add_many(batch, {one.id: questions(one.id) for one in batch})
        best = {text: index.search(text, 1)[0].confidence for text in asked}
        for least in (0.0, 0.1, 0.3, 0.5, 0.9, 1.0):
            found = find_gaps(index, asked, least=least)
            assert found.judged_by == "confidence"
            told = {gap.query: gap.confidence for gap in found.gaps}
            assert told == {text: p for text, p in best.items() if p is not None and p < least}
        assert [gap.times for gap in found.gaps] == [2, 1, 1]  # the most asked first
        with pytest.raises(InvalidInput, match="between 0 and 1"):
            find_gaps(index, asked, least=2)
        with pytest.raises(InvalidInput, match="k must be"):
            find_gaps(index, asked, k=0)
