from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "store"))  # the crash harness and the small disks live there

from index_samples import TOY

from incdsi.index import Index
from tests.engines import FOLDER, Place, lite, places, server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Whatever lives in a `place` is tested in a folder, in Milvus Lite and, where there is one, on a Milvus server."""
    if "place" in metafunc.fixturenames:
        chosen = [FOLDER]
        if metafunc.definition.get_closest_marker("folder") is None:
            heavy = metafunc.definition.get_closest_marker("heavy") is not None
            chosen += [lite(heavy), server(heavy)]
        metafunc.parametrize("place", chosen, indirect=True)


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where an index of that name lives."""
    yield from places(request.param, tmp_path)


@pytest.fixture
def index(place: Place) -> Iterator[Index]:
    with Index.create(place("shop"), TOY) as made:
        yield made


@pytest.fixture
def reopen() -> Iterator[Callable[..., Index]]:
    """Opens an index again and closes it when the test ends."""
    opened: list[Index] = []

    def open_again(path: Path | str, encoder: Any = TOY) -> Index:
        opened.append(Index.open(path, encoder))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()
