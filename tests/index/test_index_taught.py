"""What was taught stays taught: through tuning, another encoder, and coming back after a delete."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from index_samples import WORDS, ToyEncoder, answers, asked_for, docs, ids

from incdsi.index import Index, tuning

ODD = ("zebra", "piano", "harbour", "orange", "violin", "copper", "marble", "window", "engine")
TAUGHT = {f"d{number}": f"{odd} {WORDS[number]}" for number, odd in enumerate(ODD)}  # words favour others


def taught_index(path: Path, lexical_weight: float) -> Index:
    """Sixty documents, nine of them taught a query with a word of others."""
    index, batch = Index.create(path, ToyEncoder(dimension=192)), docs(60)
    index.add_many(batch, asked_for(batch, 4))
    weigh(index, lexical_weight)
    for id, query in TAUGHT.items():
        index.teach(query, id)
    return index


def weigh(index: Index, lexical_weight: float) -> None:
    with index._changing(None):
        index._save(replace(index._settings, lexical_weight=lexical_weight))


def found_first(index: Index) -> list[str]:
    return [id for id, query in TAUGHT.items() if ids(index, query, 1) == [id]]


def test_what_was_taught_is_first_in_fused_search_under_another_encoder(tmp_path: Path) -> None:
    with taught_index(tmp_path / "shop", 0.5) as index:
        assert found_first(index) == list(TAUGHT)
        index.adopt(ToyEncoder(dimension=200, seed=1))
        assert found_first(index) == list(TAUGHT)


@pytest.mark.parametrize("chosen", [0.2, 0.6])
def test_what_was_taught_is_first_in_fused_search_at_the_weight_that_tuning_chose(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: float
) -> None:
    monkeypatch.setattr(tuning, "best_fusion", lambda live, asked: chosen)
    with taught_index(tmp_path / "shop", 0.3) as index:
        result = index.tune()
        assert (index.info().lexical_weight, index.info().quality) == (chosen, result.after)
        assert found_first(index) == list(TAUGHT)
        with Index.open(tmp_path / "shop", ToyEncoder(dimension=192)) as again:
            assert answers(again) == answers(index)
        assert index.verify() == []
