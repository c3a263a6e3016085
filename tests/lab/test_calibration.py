"""Calibration error, Brier score and F1, beside cases that can be told by hand."""

from __future__ import annotations

import numpy as np
import pytest

from incdsi_lab.calibration import reliability


def test_what_is_right_as_often_as_it_says_has_no_error():
    told = np.repeat([0.25, 0.75], 400)
    right = np.tile([True, False, False, False], 100).tolist() + np.tile([True, True, True, False], 100).tolist()
    found = reliability(told, np.array(right))
    assert found["calibration_error"] == 0.0
    assert found["brier_score"] == pytest.approx(0.1875)
    assert found["brier_score_of_base_rate"] == pytest.approx(0.25)
    assert [(one["from"], one["n"], one["right"]) for one in found["diagram"]] == [(0.2, 400, 0.25), (0.7, 400, 0.75)]


def test_what_boasts_is_off_by_as_much_as_it_boasts():
    found = reliability(np.full(200, 0.9), np.arange(200) % 2 == 0)
    assert found["calibration_error"] == pytest.approx(0.4)


def test_the_threshold_of_one_half_is_used_on_the_other():
    draw = np.random.default_rng(0)
    told = draw.random(2000)
    found = reliability(told, told > 0.6)
    assert found["f1"] > 0.99 > found["f1_without_threshold"]


def test_certainty_falls_into_the_last_bin():
    (one,) = reliability(np.ones(4), np.array([True, True, True, True]))["diagram"]
    assert (one["from"], one["told"], one["right"]) == (0.9, 1.0, 1.0)
