"""Settings are checked when made."""

from __future__ import annotations

import pytest

from incdsi.errors import InvalidHyperparameters
from incdsi.training.settings import PAPER_MSMARCO, PAPER_NQ, FinetuneSettings, FrozenSettings


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("epochs", 0, "epochs must be a whole number of at least 1, not 0"),
        ("batch_size", 2.5, "batch_size must be a whole number"),
        ("patience", True, "patience must be a whole number"),
        ("seed", -1, "seed must be a whole number of at least 0"),
        ("learning_rate", 0.0, "learning_rate must be a finite number above 0, not 0.0"),
        ("scale", float("nan"), "scale must be a finite number above 0, not nan"),
        ("weight_decay", -0.1, "weight_decay must be a finite number at least 0"),
        ("start", "middle", "start must be one of text, queries, random, not 'middle'"),
    ],
)
@pytest.mark.parametrize("kind", [FrozenSettings, FinetuneSettings])
def test_a_wrong_value_is_named(kind: type, name: str, value: object, sentence: str) -> None:
    with pytest.raises(InvalidHyperparameters, match=sentence):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("row_learning_rate", 0), ("max_length", 2), ("clip", -1), ("frozen_epochs", -1)]
)
def test_finetune_checks_its_own(name: str, value: float) -> None:
    with pytest.raises(InvalidHyperparameters, match=f"^{name} must be"):
        FinetuneSettings(**{name: value})


def test_the_papers_settings_are_the_papers() -> None:
    for settings, rate, batch in ((PAPER_NQ, 1e-5, 128), (PAPER_MSMARCO, 5e-5, 1024)):
        assert (settings.learning_rate, settings.row_learning_rate) == (rate, rate)
        assert (settings.batch_size, settings.epochs, settings.max_length) == (batch, 20, 32)
        assert settings.epsilon == 1e-8
        assert settings.start == "random"
        assert settings.frozen_epochs == 0
        assert not settings.decay
