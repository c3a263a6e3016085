from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from incdsi.index import Index
from tests.server.servers import make, running

Start = Callable[..., httpx2.Client]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shop"


@pytest.fixture
def index(folder: Path) -> Iterator[Index]:
    with make(folder) as made:
        yield made


@pytest.fixture
def start(index: Index, folder: Path) -> Iterator[Start]:
    """`start(batch=3)` runs a server of `index` with these settings and gives a client of it."""
    with ExitStack() as stack:

        def go(headers: dict[str, str] | None = None, **settings: Any) -> httpx2.Client:
            url = stack.enter_context(running(index, folder, **settings))
            return stack.enter_context(httpx2.Client(base_url=url, headers=headers or {}, timeout=30))

        yield go


@pytest.fixture
def http(start: Start) -> httpx2.Client:
    return start()
