"""The engines that one suite of behaviours runs on, and where indexes live on each."""

from __future__ import annotations

import importlib.util
import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.milvus_server import ADDRESS

HAS_LITE = importlib.util.find_spec("milvus_lite") is not None and importlib.util.find_spec("pymilvus") is not None
REQUIRED = os.environ.get("INCDSI_REQUIRE_MILVUS") == "1"  # skipping is for laptops
FOLDER = "folder"
SERVER = pytest.param(
    "server",
    marks=[
        pytest.mark.milvus,
        pytest.mark.skipif(ADDRESS not in os.environ, reason="no Milvus server here; `make test-milvus` starts one"),
    ],
)
Place = Callable[[str], Any]
LIVES_FOR = 1.0  # seconds: so long a test waits for a writer that is gone


def lite(heavy: bool) -> Any:
    """Milvus Lite in this process; what makes thousands of calls is slow there."""
    marks = [pytest.mark.skipif(not HAS_LITE and not REQUIRED, reason="milvus-lite is not installed")]
    return pytest.param("lite", marks=[*marks, pytest.mark.slow] if heavy else marks)


def places(engine: str, folder: Path) -> Iterator[Callable[[str], Any]]:
    """A function from names to where indexes of that name live; leaves nothing behind."""
    if engine == FOLDER:
        yield lambda name: folder / name
    elif engine == "lite":
        yield from _lite(folder / "milvus.db")
    else:
        yield from _server(os.environ[ADDRESS])


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _lite(file: Path) -> Iterator[Callable[[str], str]]:
    from milvus_lite.server_manager import server_manager_instance

    with patch("incdsi.engine.milvus.lease.LIVES_FOR", LIVES_FOR):
        yield lambda name: f"milvus+lite://{file}/{_plain(name)}"
    server_manager_instance.release_server(str(file))


def _server(address: str) -> Iterator[Callable[[str], str]]:
    from pymilvus import MilvusClient

    own = f"t{uuid.uuid4().hex[:12]}_"
    with patch("incdsi.engine.milvus.lease.LIVES_FOR", LIVES_FOR):
        yield lambda name: f"milvus://{address}/{own}{_plain(name)}"
    client = MilvusClient(uri=f"http://{address}")
    for name in client.list_collections():
        if name.startswith(own):
            client.drop_collection(name)
    client.close()
