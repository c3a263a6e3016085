"""The fusion is chosen by few held-out queries, carefully, and moves no document that was not taught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from index_samples import ToyEncoder, answers, asked_for, docs, ids, vectors

from incdsi.engine.settings import DEFAULT_FUSION, Fusion
from incdsi.index import Index, tuning
from incdsi.index.quality import LEARNED_ALONE, NEAREST_ALONE, WORDS_ALONE, Panel
from tests.engines import Place

pytestmark = pytest.mark.heavy


def choice(monkeypatch: pytest.MonkeyPatch, rank: Callable[[Fusion], int], probes: int) -> Fusion:
    """What is chosen when each of so many probes is found at that rank by a fusion."""

    def ranks(view: Any, asked: Sequence[Any], fusions: Sequence[Fusion]) -> np.ndarray:
        return np.array([[rank(fusion)] * probes for fusion in fusions]).reshape(len(fusions), probes)

    monkeypatch.setattr(tuning, "ranks_by_fusion", ranks)
    return tuning.best_fusion([Panel(None, [None] * probes)])  # type: ignore[arg-type]


@pytest.mark.parametrize("probes", [0, 1, 30, 2000])
def test_probes_that_all_fusions_find_alike_leave_the_default(monkeypatch: pytest.MonkeyPatch, probes: int) -> None:
    assert choice(monkeypatch, lambda fusion: 2, probes) == DEFAULT_FUSION


@pytest.mark.parametrize("alone", [LEARNED_ALONE, NEAREST_ALONE, WORDS_ALONE])
def test_one_part_alone_is_chosen_where_it_finds_most(monkeypatch: pytest.MonkeyPatch, alone: Fusion) -> None:
    assert choice(monkeypatch, lambda fusion: 1 if fusion == alone else 2, 200) == alone
    assert choice(monkeypatch, lambda fusion: 1 if fusion == alone else 2, 3) == DEFAULT_FUSION


def test_few_held_out_queries_choose_the_fusion_and_move_only_what_was_taught(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "best_fusion", lambda asked: Fusion(0.5, 0.4))
    batch, encoder = docs(60), ToyEncoder(dimension=64)
    with Index.create(place("shop"), encoder) as index:
        index.add_many(batch[:-1], asked_for(batch[:-1], 4))
        index.teach("zebra river", "d7")
        before = vectors(index)
        assert 6 <= index.info().held_out_queries < tuning.FEW
        monkeypatch.setattr(tuning, "FEW", 6)
        index.add(batch[-1])
        assert index._session.settings.fusion == Fusion(0.5, 0.4)
        assert index.last_tuning is None
        after = vectors(index)
        assert {id for id, vector in before.items() if after[id] != vector} <= {"d7"}
        assert ids(index, "zebra river", 1) == ["d7"]
        assert index.verify() == []
        version = index.version
        index.add(docs(61)[-1])
        assert index.version == version + 1  # and is not chosen again before there are four times as many
        with Index.open(place("shop"), encoder) as again:
            assert answers(again) == answers(index)


def test_another_encoder_has_its_fusion_chosen_anew(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = docs(20)
    with Index.create(place("shop"), ToyEncoder(dimension=32)) as index:
        index.add_many(batch, asked_for(batch, 4))
        assert index._session.settings.fusion == DEFAULT_FUSION
        monkeypatch.setattr(tuning, "FEW", 3)
        monkeypatch.setattr(tuning, "best_fusion", lambda asked: Fusion(0.5, 0.4))
        index.adopt(ToyEncoder(dimension=24, seed=1))
        settings = index._session.settings
        assert (settings.fusion, settings.fused_at) == (Fusion(0.5, 0.4), index.info().held_out_queries)


def test_fusions_that_chance_cannot_tell_apart_give_way_to_their_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares of 0.2 and 0.6 each find half of the questions first, and none between them is worse."""

    def ranks(view: Any, asked: Sequence[Any], fusions: Sequence[Fusion]) -> np.ndarray:
        halves = {0.2: [1, 2], 0.6: [2, 1]}
        inside = [0.2 <= fusion.nearest_share <= 0.6 and fusion.lexical_weight == 0.25 for fusion in fusions]
        found = [
            halves.get(fusion.nearest_share, [1, 2]) if good else [5, 5]
            for fusion, good in zip(fusions, inside, strict=True)
        ]
        return np.array([one * 50 for one in found])

    monkeypatch.setattr(tuning, "ranks_by_fusion", ranks)
    chosen = tuning.best_fusion([Panel(None, [None] * 100)])  # type: ignore[arg-type]
    assert chosen == Fusion(0.25, 0.4)


@pytest.mark.parametrize(("questions", "chosen"), [(50, DEFAULT_FUSION), (2000, tuning.FUSIONS[0])])
def test_caution_gives_way_to_many_questions(questions: int, chosen: Fusion, monkeypatch: pytest.MonkeyPatch) -> None:
    """The learned score alone puts one question in fifty first, which are second by all others, and no other behind."""

    def ranks(view: Any, asked: Sequence[Any], fusions: Sequence[Fusion]) -> np.ndarray:
        better = np.arange(len(asked)) % 50 == 0
        return np.array([1 + (better & (fusion != tuning.FUSIONS[0])) for fusion in fusions])

    monkeypatch.setattr(tuning, "ranks_by_fusion", ranks)
    assert tuning.best_fusion([Panel(None, [None] * questions)]) == chosen  # type: ignore[arg-type]
