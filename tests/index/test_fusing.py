"""The fusion chosen is the one that makes the documents of probes most likely, carefully where they are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from incdsi.engine.settings import DEFAULT_FUSION, Fusion
from incdsi.index.fusing import CHANCE, FUSIONS, Field, best_fusion, squared_steps
from incdsi.index.quality import LEARNED_ALONE, NEAREST_ALONE, WORDS_ALONE, Panel

RIVALS = 9


def field(means: Sequence[float], probes: int, seed: int = 0) -> list[np.ndarray]:
    """Probes with rivals that are so far ahead of the right document by each part, more or less."""
    rng = np.random.default_rng(seed)
    ahead = np.asarray(means)[:, None] + rng.standard_normal((probes, len(means), RIVALS))
    return [np.concatenate([np.zeros((len(means), 1)), one], axis=1) for one in ahead]


def chosen(probes: Sequence[np.ndarray]) -> Fusion:
    return best_fusion([Panel(None, (), told=probes)])  # type: ignore[arg-type]


@pytest.mark.parametrize("probes", [0, 1, 30, 2000])
def test_parts_that_tell_nothing_leave_the_default(probes: int) -> None:
    assert chosen([np.zeros((3, 1 + RIVALS))] * probes) == DEFAULT_FUSION


def test_probes_without_rivals_leave_the_default() -> None:
    assert chosen([np.zeros((3, 1))] * 30) == DEFAULT_FUSION


@pytest.mark.parametrize(
    ("means", "alone"), [((-2, 1, 1), LEARNED_ALONE), ((1, -2, 1), NEAREST_ALONE), ((1, 1, -2), WORDS_ALONE)]
)
def test_one_part_alone_is_chosen_where_the_others_mislead(means: Sequence[float], alone: Fusion) -> None:
    assert chosen(field(means, 400)) == alone
    few = chosen(field(means, 3))
    assert squared_steps(few) < squared_steps(alone) / 2


def test_parts_count_as_they_tell() -> None:
    """Of parts that err on their own, odds add up in proportion to how far each leads."""
    probes = field((-2.0, -1.0, -1.0), 2000)
    fusion = chosen(probes)
    assert fusion.learned_weight == pytest.approx(0.5, abs=0.05)
    assert fusion.nearest_weight == pytest.approx(0.25, abs=0.05)
    assert chosen(probes[::-1]) == fusion
    assert chosen([3.0 * one for one in probes]) == fusion


def test_what_is_always_first_by_every_part_leaves_the_default() -> None:
    assert chosen([np.minimum(one, -3.0) * [[0.0] + [1.0] * RIVALS] for one in field((-5, -5, -5), 200)]) == (
        DEFAULT_FUSION
    )


@pytest.mark.parametrize("fusion", [FUSIONS[0], DEFAULT_FUSION, WORDS_ALONE, Fusion(0.05, 0.3)])
def test_a_likelihood_is_that_of_the_best_sharpness(fusion: Fusion) -> None:
    probes = field((-2.0, -0.5, -1.0), 50, seed=1)
    weights = np.array([fusion.learned_weight, fusion.nearest_weight, fusion.lexical_weight])
    ahead = np.stack([weights @ one for one in probes])
    right = [1 / np.exp(sharpness * ahead).sum(axis=1) for sharpness in np.linspace(0.02, 8, 2000)]
    by_hand = max(np.log(one + CHANCE).sum() for one in right)
    assert Field(probes, np.ones(len(probes))).likelihood(fusion) == pytest.approx(by_hand, abs=1e-3)


def test_a_probe_of_twice_the_weight_counts_as_two() -> None:
    probes = field((-2.0, -0.5, -1.0), 50, seed=1)
    weighty, twice = Field(probes, np.array([2.0] * 20 + [1.0] * 30)), Field([*probes[:20], *probes], np.ones(70))
    for fusion in FUSIONS[::20]:
        assert weighty.likelihood(fusion) == pytest.approx(twice.likelihood(fusion), abs=1e-3)


def test_what_no_fusion_finds_does_not_choose() -> None:
    """Those far behind by every part, if least by one of them, count for nothing beside as many that are told apart."""
    probes = field((-2.0, -1.0, -1.0), 300)
    behind = np.array([[40.0], [20.0], [40.0]]) * np.array([0.0, *[1.0] * RIVALS])
    lost = [np.abs(one) + behind for one in probes]
    fusion = chosen(probes)
    assert chosen([*probes, *lost]) == fusion
