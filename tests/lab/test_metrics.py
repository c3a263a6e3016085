"""Metrics agree with ir-measures, ties count against us, and intervals and tests mean what they say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from incdsi.errors import InvalidFile, InvalidInput
from incdsi.trec import write_lines
from incdsi_lab.metrics import MEASURES, Scores, compare, score, score_ranks, wilson
from incdsi_lab.ranking import ranks, ranks_among, run_of
from incdsi_lab.runs import qrels_lines, run_lines

# Few distinct values, so that ties are everywhere.
scored = st.integers(1, 14).flatmap(
    lambda n: st.lists(
        st.tuples(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=n, max_size=n), st.integers(0, n - 1)),
        min_size=1,
        max_size=5,
    )
)


def hits(values: list[int]) -> Scores:
    """Scores of queries that were found at 1 or not at all."""
    return score_ranks([f"q{i}" for i in range(len(values))], np.where(np.array(values) == 1, 1, 99))


def everywhere(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """The positions of scores that are those of all documents."""
    return np.broadcast_to(np.arange(scores.shape[1]), scores.shape)


class TestTies:
    def test_a_tie_counts_against_the_right_document(self) -> None:
        scores = np.array([[1.0, 1.0, 0.5], [0.1, 0.2, 0.3], [0.0, 0.0, 0.0]], dtype=np.float32)
        np.testing.assert_array_equal(ranks(scores, np.array([0, 2, 1])), [2, 1, 3])

    def test_what_cannot_be_compared_counts_against_it_too(self) -> None:
        scores = np.array([[np.nan, np.nan, np.nan], [0.1, np.nan, 0.3]], dtype=np.float32)
        np.testing.assert_array_equal(ranks(scores, np.array([1, 2])), [3, 2])

    @given(scored)
    @settings(max_examples=60, deadline=None)
    def test_ir_measures_sees_the_same_ranks(self, rows: list[tuple[list[float], int]]) -> None:
        scores = np.array([row for row, _ in rows], dtype=np.float32)
        owners = np.array([owner for _, owner in rows])
        query_ids = [f"q{i}" for i in range(len(rows))]
        document_ids = [f"d{i}" for i in range(scores.shape[1])]
        run = run_of(everywhere(scores), scores, owners, query_ids, document_ids)
        qrels = {query: {document_ids[owner]: 1} for query, owner in zip(query_ids, owners, strict=True)}
        judged, counted = score(run, qrels), score_ranks(query_ids, ranks(scores, owners))
        assert judged.query_ids == counted.query_ids
        for measure in MEASURES:
            np.testing.assert_allclose(judged.values[measure], counted.values[measure], err_msg=measure)

    def test_a_run_keeps_the_scores_that_are_not_tied(self) -> None:
        scores = np.array([[0.5, 3.0, 3.0, 1.0]], dtype=np.float32)
        run = run_of(everywhere(scores), scores, np.array([1]), ["q"], ["a", "b", "c", "d"], depth=3)
        assert list(run["q"]) == ["c", "b", "d"]
        assert run["q"]["c"] == 3.0 > run["q"]["b"] > 2.999999
        assert run["q"]["d"] == 1.0

    def test_a_run_with_ties_is_refused(self) -> None:
        with pytest.raises(InvalidInput, match="without tied scores"):
            score({"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}})

    def test_blocks_do_not_show(self) -> None:
        draw = np.random.default_rng(0)
        vectors, queries = (draw.normal(size=(n, 4)).astype(np.float32) for n in (7, 2100))
        owners = draw.integers(0, 7, 2100)
        np.testing.assert_array_equal(ranks_among(vectors, queries, owners), ranks(queries @ vectors.T, owners))
        assert ranks_among(vectors, queries[:0], owners[:0]).shape == (0,)


class TestScores:
    def test_by_hand(self) -> None:
        found = score_ranks(["a", "b", "c", "d"], np.array([1, 2, 10, 11]))
        assert [found.mean(measure) for measure in MEASURES] == pytest.approx([25, 50, 75, 100 * 1.6 / 4])
        assert len(found) == 4

    def test_a_query_that_the_run_leaves_out_is_lost(self) -> None:
        found = score({"q1": {"a": 2.0, "b": 1.0}}, {"q1": {"a": 1}, "q2": {"a": 1}})
        assert found.query_ids == ("q1", "q2")
        np.testing.assert_array_equal(found.values["MRR@10"], [1, 0])
        assert score({}, {"q1": {"a": 1}}).mean("H@1") == 0

    def test_ranks_and_queries_go_together(self) -> None:
        with pytest.raises(InvalidInput, match="a rank for each of 2 queries"):
            score_ranks(["a", "b"], np.array([1]))

    def test_it_says_what_it_rests_on(self) -> None:
        assert str(hits([1, 0, 1, 0]).estimate()) == "50.0 [15.0, 85.0]"


class TestIntervals:
    @pytest.mark.parametrize(("found", "n", "low", "high"), [(0, 10, 0.0, 0.2775), (62, 100, 0.5221, 0.7090)])
    def test_wilson_is_the_textbooks(self, found: int, n: int, low: float, high: float) -> None:
        assert wilson(np.repeat([1.0, 0.0], [found, n - found])) == pytest.approx((low, high), abs=5e-4)

    def test_without_queries_nothing_is_claimed(self) -> None:
        nothing = score_ranks([], np.empty(0, dtype=np.intp))
        assert np.isnan(nothing.mean("H@1"))
        assert wilson(np.empty(0)) == (0.0, 1.0)


class TestComparison:
    def test_the_same_is_no_different(self) -> None:
        one = hits([1, 0, 1])
        same = compare(one, one)
        assert (same.difference, same.p_value) == (0, 1)

    def test_hits_are_compared_exactly(self) -> None:
        # 9 better and 1 worse of 10 that differ: two-sided 22 / 1024
        a, b = hits([0] * 9 + [1] + [1] * 10), hits([1] * 9 + [0] + [1] * 10)
        found = compare(a, b)
        assert found.difference == pytest.approx(40)
        assert found.p_value == pytest.approx(22 / 1024)

    def test_other_queries_are_refused(self) -> None:
        with pytest.raises(InvalidInput, match="the same queries"):
            compare(hits([1]), hits([1, 0]))


class TestTrecFiles:
    def test_ir_measures_reads_what_is_written(self, tmp_path: Path) -> None:
        ir_measures = pytest.importorskip("ir_measures")
        draw = np.random.default_rng(2)
        scores = draw.integers(0, 5, (20, 30)).astype(np.float32)
        owners = draw.integers(0, 30, 20)
        run = run_of(everywhere(scores), scores, owners, [f"q{i}" for i in range(20)], [f"d{i}" for i in range(30)])
        qrels = {f"q{i}": {f"d{owner}": 1} for i, owner in enumerate(owners)}
        assert write_lines(tmp_path / "run.trec", run_lines(run)) == 200
        assert write_lines(tmp_path / "qrels.txt", qrels_lines(qrels)) == 20
        read = (
            ir_measures.read_trec_qrels(str(tmp_path / "qrels.txt")),
            ir_measures.read_trec_run(str(tmp_path / "run.trec")),
        )
        found = ir_measures.calc_aggregate([ir_measures.RR @ 10, ir_measures.Success @ 5], *read)
        expected = score(run, qrels)
        assert 100 * found[ir_measures.RR @ 10] == pytest.approx(expected.mean("MRR@10"))
        assert 100 * found[ir_measures.Success @ 5] == pytest.approx(expected.mean("H@5"))

    def test_an_id_with_a_space_is_refused_and_nothing_is_written(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidFile, match="ids without spaces"):
            write_lines(tmp_path / "run.trec", run_lines({"a b": {"d": 1.0}}))
        assert list(tmp_path.iterdir()) == []
