"""Weights and margins are checked when they are made."""

from __future__ import annotations

import pytest

from incdsi import Hyperparameters, Margins, Weights
from incdsi.errors import InvalidHyperparameters
from incdsi.hyperparameters import BOLD, PAPER, SAFE


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Margins(retrieve=-1), "margins.retrieve must be at least 0, not -1"),
        (
            lambda: Margins(preserve=float("nan")),
            "margins.preserve must be a finite number at least 0, not nan",
        ),
        (lambda: Weights(retrieve=1.0), "weights.retrieve must be above 0 and below 1, not 1"),
        (lambda: Weights(retrieve=0), "weights.retrieve must be above 0 and below 1, not 0"),
        (lambda: Weights(anchor=0.0), "weights.anchor must be above 0, not 0"),
        (lambda: Weights(anchor="1"), "weights.anchor must be a finite number above 0, not '1'"),
        (lambda: Hyperparameters(anchor_scale=float("inf")), "anchor_scale must be a finite number"),
    ],
)
def test_out_of_range_is_refused_in_one_sentence(make, sentence):
    with pytest.raises(InvalidHyperparameters, match=sentence):
        make()


def test_the_defaults_are_the_safe_ones():
    assert Hyperparameters() == SAFE
    assert (SAFE.weights.retrieve, SAFE.weights.anchor, SAFE.anchor_scale) == (0.3, 0.3, 20.0)
    assert BOLD.weights.retrieve > SAFE.weights.retrieve
    assert PAPER.anchor_scale == 0.0
