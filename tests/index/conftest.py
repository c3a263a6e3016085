from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1] / "store"))  # the crash harness and the small disks live there

from index_samples import TOY

from incdsi.index import Index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "shop", TOY) as made:
        yield made


@pytest.fixture
def reopen() -> Iterator[Callable[..., Index]]:
    """Opens an index again and closes it when the test ends."""
    opened: list[Index] = []

    def open_again(path: Path, encoder: Any = TOY) -> Index:
        opened.append(Index.open(path, encoder))
        return opened[-1]

    yield open_again
    for one in opened:
        one.close()
