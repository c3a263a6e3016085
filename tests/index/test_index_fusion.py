"""The fusion is chosen by few held-out queries, and moves no document that was not taught."""

from __future__ import annotations

import pytest
from index_samples import ToyEncoder, answers, asked_for, docs, ids, vectors

from incdsi.engine.protocol import Engine
from incdsi.engine.settings import DEFAULT_FUSION, Fusion
from incdsi.index import Index, tuning, unasked
from incdsi.index.quality import Panel
from incdsi.index.replacement import Replacement
from tests.engines import Place

pytestmark = pytest.mark.heavy


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


@pytest.mark.parametrize("known", [1, 2])
def test_questions_too_few_to_hold_out_choose_the_fusion_as_if_nobody_had_asked(
    place: Place, monkeypatch: pytest.MonkeyPatch, known: int
) -> None:
    monkeypatch.setattr(tuning, "FEW", 4)
    monkeypatch.setattr(unasked, "ENOUGH", 4)
    batch, seen = docs(40), list[Panel]()
    monkeypatch.setattr(tuning, "best_fusion", lambda asked: (seen.extend(asked), Fusion(0.5, 0.4))[1])
    with Index.create(place("shop"), ToyEncoder(dimension=32)) as index:
        index.add_many(batch[:30], asked_for(batch[:3], known))
        assert index._session.settings.fusion == DEFAULT_FUSION  # three are too few
        index.add_many(batch[30:39], asked_for(batch[30:39], known))
        settings = index._session.settings
        assert (settings.fusion, settings.fused_at, settings.asked_at) == (Fusion(0.5, 0.4), 0, 12)
        held_out, others = seen
        assert (len(held_out.asked), others.weight) == (0, 0.5)
        assert (len(others.asked), others.telling) == (4 * known, 12 * known)  # a third at a time
        index.add(batch[39], ["one more question"])
        assert len(seen) == 2  # not before there are four times as many
        assert index.verify() == []


def test_where_everything_was_asked_for_once_the_fusion_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "FEW", 4)
    batch = docs(40)
    with Index.create(place("shop"), ToyEncoder(dimension=32)) as index:
        index.add_many(batch, asked_for(batch, 1))
        assert index.version == len(batch)  # nothing but what was added
        assert index._session.settings.fusion == DEFAULT_FUSION


def test_a_choice_of_the_fusion_that_fails_refuses_nothing_and_is_not_tried_at_every_addition(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[int]()

    def full_disk(engine: Engine, held_out: int) -> Replacement:
        tried.append(held_out)
        raise OSError("no space left on the device")

    monkeypatch.setattr(tuning, "FEW", 4)
    monkeypatch.setattr(tuning, "fused_anew", full_disk)
    batch = docs(40)
    with Index.create(place("shop"), ToyEncoder(dimension=32)) as index:
        index.add_many(batch[:30], asked_for(batch[:12], 1))
        for document in batch[30:]:
            index.add(document, ["what is it?"])
        assert len(index) == 40
        assert tried == [0]
