from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from incdsi.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.create(tmp_path / "shop", {"encoder": "none"}) as made:
        yield made


@pytest.fixture
def scratch() -> Iterator[Path]:
    """Memory, where there is some: thousands of images are written and read once."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)
