"""What the adapters' tests share: an index of the toy encoder, in a folder and behind a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from incdsi import Index, SearchIndex
from tests.index.index_samples import TOY
from tests.server.servers import running

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before any test imports it


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with Index.create(folder, TOY) as made:
        yield made


@pytest.fixture
def remote(index: Index, folder: Path) -> Iterator[SearchIndex]:
    with running(index, folder) as url, Index.open(url) as client:
        yield client
