"""Hits say how probably they are right, once there are held-out questions to learn it from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from index_samples import WORDS, ToyEncoder, docs, path_of

from incdsi.errors import InvalidInput
from incdsi.index import Index, tuning
from incdsi.index.quality import WORDS_ALONE

pytestmark = pytest.mark.folder

ENCODER = ToyEncoder(dimension=48)


def questions(id: str) -> list[str]:
    """Four, of which some name the document and some could be for any."""
    rng = np.random.default_rng(int(id[1:]))
    return [
        f"{' '.join(rng.choice(WORDS, 3, replace=False))} {id if rng.random() < 0.6 else 'thing'} {number}"
        for number in range(4)
    ]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    """An index that chose its fusion by held-out questions."""
    batch = docs(150)
    with Index.create(tmp_path_factory.mktemp("known") / "shop", ENCODER) as index:
        index.add_many(batch, {one.id: questions(one.id) for one in batch})
        assert tuning.FEW <= index.info().held_out_queries < tuning.ENOUGH
        yield index


def test_hits_say_how_probably_they_are_right(known: Index) -> None:
    sure = known.search(questions("d3")[0] + " d3", 3)
    unsure = known.search("a thing of snow", 3)
    for hit in (*sure, *unsure):
        assert hit.confidence is not None
        assert 0.0 < hit.confidence < 1.0
    assert sure[0].document_id == "d3"
    assert sure[0].confidence > max(unsure[0].confidence, sure[1].confidence)  # type: ignore[type-var]
    assert known.search(questions("d3")[0] + " d3", 1)[0] == sure[0]  # whatever k is


def test_the_least_confidence_leaves_out_the_others(known: Index) -> None:
    text = questions("d3")[0] + " d3"
    hits = known.search(text, 20)
    least = hits[0].confidence
    assert least is not None
    assert known.search(text, 20, least=least) == [hit for hit in hits if (hit.confidence or 0) >= least]
    assert known.search(text, 20, least=0.0) == hits
    assert known.search(text, 20, least=1.0) == []


def test_what_it_knows_survives(known: Index) -> None:
    with Index.open(path_of(known), ENCODER) as again:
        assert again.search("a thing of snow", 5) == known.search("a thing of snow", 5)


@pytest.mark.parametrize("mode", ["learned", "lexical"])
def test_other_modes_do_not_know(known: Index, mode: str) -> None:
    assert {hit.confidence for hit in known.search("river d3", 5, mode=mode)} == {None}
    with pytest.raises(InvalidInput, match="only fused search"):
        known.search("river", 5, mode=mode, least=0.5)


@pytest.mark.parametrize("least", [-0.1, 1.1, "0.5", True, float("nan")])
def test_a_least_confidence_that_is_no_probability_is_refused(known: Index, least: object) -> None:
    with pytest.raises(InvalidInput, match="between 0 and 1"):
        known.search("river", least=least)  # type: ignore[arg-type]


def test_by_words_alone_it_knows_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "best_fusion", lambda asked: WORDS_ALONE)
    batch = docs(120)
    with Index.create(tmp_path / "shop", ENCODER) as index:
        index.add_many(batch, {one.id: questions(one.id) for one in batch})
        assert index.info().lexical_weight == 1.0
        assert index.search("river d3", 1)[0].confidence is not None


def test_before_there_is_anything_to_learn_from_it_says_none_and_refuses_to_judge(index: Index) -> None:
    index.add_many(docs(20))
    assert {hit.confidence for hit in index.search("river", 5)} == {None}
    with pytest.raises(InvalidInput, match="cannot tell how confident it is yet"):
        index.search("river", least=0.5)


def test_another_encoder_forgets_it(tmp_path: Path, known: Index) -> None:
    known.backup(tmp_path / "copy")
    with Index.open(tmp_path / "copy", ENCODER) as index:
        index.set_tuning(False)
        index.adopt(ToyEncoder(dimension=40, seed=1))
        assert index._session.settings.confidence is None
        assert {hit.confidence for hit in index.search("river", 5)} == {None}


def test_another_encoder_learns_it_anew_where_the_index_tunes_itself(tmp_path: Path, known: Index) -> None:
    known.backup(tmp_path / "copy")
    with Index.open(tmp_path / "copy", ENCODER) as index:
        before = index._session.settings.confidence
        index.adopt(ToyEncoder(dimension=40, seed=1))
        assert index._session.settings.confidence not in (None, before)
