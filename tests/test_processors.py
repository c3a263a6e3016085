"""One index gives one answer: whichever processor filled it, whichever searches it, on however many threads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.processors import Processor, some

CHILD = Path(__file__).with_name("processor_child.py")
TOLERANCE = 1e-6


def child(processor: Processor, *arguments: object) -> Any:
    command = [sys.executable, str(CHILD), *map(str, arguments)]
    run = subprocess.run(command, env=processor.environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def same(one: list[Any], other: list[Any]) -> None:
    """The same hits in the same order, but for scores that tie; scores within the tolerance."""
    assert len(one) == len(other)
    for (question, mode, hits), (_, _, others) in zip(one, other, strict=True):
        where = f"{mode} search for {question!r}"
        scores, expected = [score for _, score in hits], dict(others)
        assert scores == pytest.approx([score for _, score in others], abs=TOLERANCE), where
        for id, score in hits:
            assert score == pytest.approx(expected.get(id, others[-1][1]), abs=TOLERANCE), where


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Processor, Path]]:
    """The same documents, teaching and tuning, by every processor."""
    folder = tmp_path_factory.mktemp("processors")
    made = []
    for number, processor in enumerate(some()):
        child(processor, "fill", folder / str(number))
        made.append((processor, folder / str(number)))
    return made


def test_every_processor_searches_an_index_alike(filled: list[tuple[Processor, Path]]) -> None:
    _, path = filled[0]
    first, *others = [child(processor, "search", path) for processor, _ in filled]
    assert any(hits for _, _, hits in first)
    for other in others:
        same(other, first)


def test_every_processor_fills_an_index_alike(filled: list[tuple[Processor, Path]]) -> None:
    searcher = filled[-1][0]
    first, *others = [child(searcher, "search", path) for _, path in filled]
    for other in others:
        same(other, first)


def test_the_comparison_would_notice(filled: list[tuple[Processor, Path]]) -> None:
    found = child(filled[0][0], "search", filled[0][1])
    question, mode, hits = found[0]
    for wrong in ([[question, mode, hits[::-1]]], [[question, mode, [[hits[0][0], hits[0][1] + 1e-5], *hits[1:]]]]):
        with pytest.raises(AssertionError):
            same([*wrong, *found[1:]], found)


def test_searching_and_adding_never_import_torch(tmp_path: Path) -> None:
    assert child(some()[-1], "modules", tmp_path / "index") == []
