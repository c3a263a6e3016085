"""Newcomers to documents that were trained together: weights rehearsed on some that are taken out and added back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from index_samples import ToyEncoder, asked_for, docs

from incdsi import Index
from incdsi.documents import Document
from incdsi.hyperparameters import BOLD, SAFE, Hyperparameters
from incdsi.index import rehearsal
from incdsi.index.draft import held_out_of
from incdsi.index.quality import Probe, probes
from incdsi.index.rehearsal import (
    BETWEEN,
    FEW,
    ONE_IN,
    TELLING,
    Rehearsed,
    _takings,
    for_newcomers,
    level_of,
    safe_at,
    scale_of,
    scaled,
)
from incdsi.index.tuning import LADDER
from incdsi.records import Record, StoredQuery
from incdsi.solver import Problem, solve


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """A hundred and twenty documents trained together, four questions each, of which some are held out."""
    pytest.importorskip("torch")
    batch = docs(120)
    path = tmp_path_factory.mktemp("trained") / "shop"
    with Index.build(batch, queries=asked_for(batch, 4), path=path, train="frozen", encoder=ToyEncoder()) as index:
        yield index


def test_an_index_that_was_trained_knows_how_to_place_newcomers(trained: Index) -> None:
    settings = trained._session.settings
    scale = scale_of(trained.engine.records())
    safe = safe_at(scale, level_of(trained.engine.records()))
    assert settings.hyperparameters in [*(scaled(how, scale) for how in (*LADDER, BETWEEN)), safe]
    assert settings.tuned_at == settings.fused_at == trained.info().held_out_queries >= FEW
    assert trained.verify() == []


def test_rehearsing_leaves_the_trained_documents_where_they_are(trained: Index) -> None:
    before = {record.document.id: record.vector for record in trained.engine.records()}
    with trained.engine.changing(None):
        rehearsal.rehearse(trained._session, None)
    for record in trained.engine.records():
        np.testing.assert_array_equal(record.vector, before[record.document.id])
    trained.add(Document(id="late", text="penguins on ice"), ["penguin"])
    assert np.array_equal(next(trained.engine.records()).vector, before["d0"])


def test_the_questions_held_out_of_training_are_those_an_index_holds_out(trained: Index) -> None:
    asked = asked_for(docs(120), 4)
    for record in trained.engine.records():
        held_out = {query.text for query in record.queries if query.held_out}
        assert held_out <= set(held_out_of(record.document.id, asked.get(record.document.id, ())))
    assert trained.engine.held_out() >= FEW


@pytest.mark.parametrize(
    ("old", "chosen"),
    [
        ([70.0, 70.2, 70.4, 70.2, 70.1, 60.0, 68.0], 4),  # newcomers gain eight, others lose 0.3: a tenth are newcomers
        ([70.0, 70.2, 70.4, 70.2, 69.0, 60.0, 68.0], 3),
        ([70.0, 70.2, 71.4, 70.2, 69.0, 60.0, 68.0], 2),
        ([np.nan] * 7, 0),  # nobody else was asked about
    ],
)
def test_the_weights_are_those_that_are_best_for_all_documents_each_counted_once(
    trained: Index, monkeypatch: pytest.MonkeyPatch, old: list[float], chosen: int
) -> None:
    asked = list(probes(trained.engine.records(), trained.engine.held_out()))
    both = iter(zip(old, [40.0, 41.0, 42.0, 44.0, 50.0, 60.0, 48.0], strict=True))
    monkeypatch.setattr(rehearsal, "FEW", 1)

    def tried(engine: object, asked: object, taken: object, how: Hyperparameters) -> Rehearsed:
        old, new = next(both)
        return Rehearsed(hyperparameters=how, old=old, new=new, share=0.1)

    monkeypatch.setattr(rehearsal, "_tried", tried)
    assert for_newcomers(trained.engine, asked, None).weights == LADDER[chosen].weights


def probe_of(row: int) -> Probe:
    return Probe(text="", embedding=np.zeros(2, dtype=np.float32), row=row, dense=0.0)


@given(st.lists(st.integers(0, 400), max_size=200), st.integers(0, 1000))
def test_documents_are_taken_out_one_in_ten_at_once_until_enough_questions_tell(rows, documents):
    asked = [probe_of(row) for row in rows]
    takings = _takings(asked, documents)
    taken = [row for some in takings for row in some]
    assert len(taken) == len(set(taken))  # others each time
    assert set(taken) <= set(rows)
    told = [sum(probe.row in some for probe in asked) for some in takings]
    assert sum(told[:-1]) < TELLING  # and no more than needed
    assert sum(told) >= FEW or not takings
    for some in takings:
        assert 0 < len(some) <= max(documents // ONE_IN, 1)
    if documents >= ONE_IN * len(set(rows)):
        assert bool(takings) == (len(rows) >= FEW)


def test_few_documents_with_a_question_each_are_taken_out_several_times_over(trained: Index) -> None:
    records = {record.row: record for record in trained.engine.records()}
    asked = list(probes(iter(records.values()), trained.engine.held_out()))
    everything, how = trained.engine.whole(), scaled(BOLD, scale_of(records.values()))
    takings = [[records[row] for row in sorted(some)] for some in _takings(asked, len(records))]
    assert len(takings) > 1
    each = [rehearsal._tried(everything, asked, [some], how) for some in takings]
    pooled = rehearsal._tried(everything, asked, takings, how)
    told = [sum(probe.row in {one.row for one in some} for probe in asked) for some in takings]
    assert pooled.new == pytest.approx(np.average([one.new for one in each], weights=told), abs=0.01)
    stayed = len(asked) - np.array(told)
    assert pooled.old == pytest.approx(np.average([one.old for one in each], weights=stayed), abs=0.01)


def test_without_enough_questions_what_is_known_decides(trained: Index, tmp_path: Path) -> None:
    assert for_newcomers(trained.engine, [], None).weights == BETWEEN.weights
    with Index.build(docs(20), path=tmp_path / "unasked", encoder=ToyEncoder()) as unasked:
        assert for_newcomers(unasked.engine, [], None).weights == SAFE.weights


@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10.0), st.sampled_from([SAFE, BOLD]))
def test_a_scaled_problem_has_a_scaled_solution(seed, times, how):
    draw = np.random.default_rng(seed)
    queries, rows, text = draw.standard_normal((3, 4)), draw.standard_normal((9, 4)), draw.standard_normal(4)
    floors, ceilings = draw.standard_normal(3), draw.standard_normal(9)

    def solved(how, unit):
        problem = Problem(
            queries,
            unit * floors + how.margins.retrieve,
            rows,
            unit * ceilings - how.margins.preserve,
            how.anchor_scale * text,
        )
        return solve(problem, retrieve=how.weights.retrieve, anchor=how.weights.anchor).vector

    longer = solved(scaled(how, times * how.anchor_scale), times)
    np.testing.assert_allclose(longer, times * solved(how, 1.0), rtol=1e-4, atol=1e-4 * times)


def test_the_scale_is_how_long_vectors_are_along_their_texts():
    text = np.array([0.6, 0.8], dtype=np.float32)
    records = [
        Record(document=Document(id=str(times), text="-"), vector=np.float32(times) * text, anchor=text, queries=())
        for times in (10, 30, 35)
    ]
    assert scale_of(records) == pytest.approx(30, rel=1e-6)
    assert scale_of([]) == SAFE.anchor_scale


def asking(vector: float, texts: np.ndarray, count: int, *, generated: bool) -> Record:
    """A document whose vector scores `vector` times what its text does at so many queries, and less along the text."""
    query = np.array([0.0, 1.0], dtype=np.float32)
    return Record(
        document=Document(id="d", text="-"),
        vector=np.array([texts[0] * 20, texts[1] * vector], dtype=np.float32),
        anchor=texts,
        queries=tuple(StoredQuery(text="", embedding=query, generated=generated) for _ in range(count)),
    )


def test_the_level_is_that_of_what_was_asked_and_of_generated_queries_where_that_is_too_little():
    text = np.array([0.8, 0.6], dtype=np.float32)
    asked, made = asking(30.0, text, FEW, generated=False), asking(25.0, text, FEW, generated=True)
    assert level_of([asked, made]) == pytest.approx(30, rel=1e-6)
    assert level_of([asking(30.0, text, FEW - 1, generated=False), made]) == pytest.approx(25, rel=1e-6)
    assert level_of([asking(30.0, text, 1, generated=False)]) == 0.0


def test_safe_weights_keep_up_with_trained_documents_at_what_is_asked():
    assert safe_at(21.0, 27.0) == scaled(SAFE, 27.0)
    assert safe_at(21.0, 0.0) == scaled(SAFE, 21.0)
