from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from incdsi.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "shop", {"encoder": "none"}) as made:
        yield made
