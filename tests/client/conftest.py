from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.server.servers import make, running

Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """`serve(key=...)` runs a server of an empty index; its address."""
    with ExitStack() as stack:

        def go(**settings: Any) -> str:
            folder = tmp_path / "shop"
            return stack.enter_context(running(stack.enter_context(make(folder)), folder, **settings))

        yield go
