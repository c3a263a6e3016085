"""What an index remembers about itself comes back as it was, or is refused."""

from __future__ import annotations

import pytest

from incdsi.confidence import Confidence
from incdsi.engine.settings import Settings
from incdsi.errors import InvalidInput, UnsupportedFormat

SETTINGS = Settings(fingerprint="f", dimension=3, model=None, asked_at=90, confidence=Confidence(0.5, (1.0, 2.0)))


def test_settings_come_back_as_they_were() -> None:
    assert Settings.from_json(SETTINGS.to_json()) == SETTINGS


def test_settings_of_a_newer_version_are_refused_by_what_is_new_in_them() -> None:
    with pytest.raises(UnsupportedFormat, match=r"newer version of incdsi .* have colour, shape\); upgrade"):
        Settings.from_json({**SETTINGS.to_json(), "shape": 1, "colour": "red"})


def test_what_is_no_settings_is_refused() -> None:
    with pytest.raises(InvalidInput, match="was it made by incdsi"):
        Settings.from_json(["not", "settings"])
