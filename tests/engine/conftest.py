from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines import Place, lite, places, server


@pytest.fixture(params=[lite(heavy=False), server(heavy=False)])
def milvus(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Where an index of that name lives on Milvus."""
    yield from places(request.param, tmp_path)
