"""Which clicks are worth learning: by how many people, and how many of them agree."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.clicks import Click, Learned, Lesson, Outcome, Threshold, judged, summed
from incdsi.documents import fold
from incdsi.errors import InvalidFile, InvalidInput
from incdsi.readers import read_asked, read_clicks

THERE = {"a", "b", "c"}
spellings = st.sampled_from(["tent", "Tent ", "dry  feet", "DRY feet", "gas"])
clicks = st.lists(st.builds(Click, spellings, st.sampled_from("abcx"), st.integers(1, 4)), max_size=20)
thresholds = st.builds(Threshold, st.integers(1, 5), st.sampled_from([0.1, 0.5, 0.6, 1.0]))


def outcomes(given: list[Click], threshold: Threshold = Threshold(2, 0.6)) -> dict[tuple[str, str], Outcome]:  # noqa: B008
    return {(one.query, one.document_id): one.outcome for one in judged(given, THERE.__contains__, threshold)}


def test_a_query_needs_clicks_enough_and_agreement() -> None:
    found = outcomes(
        [
            Click("tent", "a", 3),
            Click("tent", "b"),
            Click("gas", "c"),
            Click("feet", "a", 2),
            Click("feet", "b", 2),
            Click("lamp", "x", 9),
        ]
    )
    assert found == {
        ("tent", "a"): Outcome.LEARNED,
        ("tent", "b"): Outcome.TOO_FEW,
        ("gas", "c"): Outcome.TOO_FEW,
        ("feet", "a"): Outcome.CONTRADICTED,
        ("feet", "b"): Outcome.CONTRADICTED,
        ("lamp", "x"): Outcome.UNKNOWN_DOCUMENT,
    }


def test_clicks_on_documents_that_are_gone_contradict_nobody() -> None:
    assert outcomes([Click("tent", "x", 50), Click("tent", "a", 2)])["tent", "a"] is Outcome.LEARNED


def test_spellings_of_a_query_count_together_and_the_usual_one_is_kept() -> None:
    (found,) = summed([Click("Dry Feet", "a"), Click("dry  feet", "a", 2), Click("dry feet ", "a")])
    assert found == Click("dry feet", "a", 4)


@given(clicks, thresholds, st.randoms())
def test_the_order_of_a_log_and_how_it_is_summed_do_not_matter(
    given: list[Click], threshold: Threshold, order: random.Random
) -> None:
    expected = outcomes(given, threshold)
    single = [Click(one.query, one.document_id) for one in given for _ in range(one.count)]
    for other in (order.sample(given, len(given)), single, summed(given)):
        assert outcomes(other, threshold) == expected


@given(clicks, thresholds)
def test_lessons_are_what_a_plain_count_says(given: list[Click], threshold: Threshold) -> None:
    for lesson in judged(given, THERE.__contains__, threshold):
        mine = [one for one in given if fold(one.query) == fold(lesson.query)]
        own = sum(one.count for one in mine if one.document_id == lesson.document_id)
        everybody = sum(one.count for one in mine if one.document_id in THERE)
        assert (lesson.clicks, lesson.asked) == (own, everybody)
        passes = lesson.document_id in THERE and own >= threshold.clicks and own >= threshold.share * everybody
        assert (lesson.outcome is Outcome.LEARNED) == passes


@given(clicks, thresholds)
def test_above_half_a_query_is_learned_for_one_document_at_most(given: list[Click], threshold: Threshold) -> None:
    if threshold.share > 0.5:
        learned = [query for (query, _), outcome in outcomes(given, threshold).items() if outcome is Outcome.LEARNED]
        assert len(learned) == len(set(learned))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("", "a"), "needs the query"),
        (("tent", ""), "needs the id"),
        (("tent", "a", 0), "at least 1, not 0"),
        (("tent", "a", True), "at least 1, not True"),
        (("tent", "a", 1.5), "at least 1, not 1.5"),
    ],
)
def test_a_click_that_is_none_is_refused(arguments: tuple, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        Click(*arguments)


@pytest.mark.parametrize(("least", "share"), [(0, 0.6), (1.5, 0.6), (2, 0.0), (2, 1.1), (2, float("nan"))])
def test_a_threshold_that_is_none_is_refused(least: int, share: float) -> None:
    with pytest.raises(InvalidInput):
        Threshold(least, share)


def test_what_was_learned_is_the_same_in_json_and_back() -> None:
    lesson = Lesson(query="tent", document_id="a", clicks=2, asked=3, outcome=Outcome.LEARNED)
    learned = Learned(lessons=(lesson,), dry_run=False, version=7)
    assert Learned.from_json(learned.to_json()) == learned
    assert learned.to_json()["lessons"] == [{"query": "tent", "id": "a", "clicks": 2, "asked": 3, "outcome": "learned"}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "c.jsonl",
            '{"query": "tent", "id": "a", "count": 3}\n{"query": "gas", "document_id": 7, "at": "12:01"}\n',
        ),
        ("c.csv", "query,id,count,time\ntent,a,3,12:00\ngas,7,,12:01\n"),
        ("c.tsv", "query\tdoc_id\tcount\ntent\ta\t3\ngas\t7\t1\n"),
    ],
)
def test_logs_are_read_in_any_format(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert list(read_clicks(tmp_path / name)) == [Click("tent", "a", 3), Click("gas", "7")]
    assert list(read_asked(tmp_path / name)) == ["tent", "gas"]


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('{"text": "a document", "id": "a"}', "c.jsonl:1: field 'query' is missing, found only 'text', 'id'"),
        ('{"query": "tent"}', "c.jsonl:1: field 'id' is missing or empty"),
        ('{"query": " ", "id": "a"}', "c.jsonl:1: field 'query' is missing or empty"),
        ('{"query": "tent", "id": "a", "count": -1}', "c.jsonl:1: the count of a click must be a whole number"),
        ("", "no clicks found"),
    ],
)
def test_a_line_that_is_no_click_is_refused_with_its_place(tmp_path: Path, line: str, sentence: str) -> None:
    (tmp_path / "c.jsonl").write_text(line)
    with pytest.raises(InvalidFile, match=sentence):
        list(read_clicks(tmp_path / "c.jsonl"))
