"""The engines that one suite of behaviours runs on, and where indexes live on each."""

from __future__ import annotations

import importlib.util
import os
import re
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from incdsi.engine.addresses import parse
from incdsi.engine.milvus import engine
from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.kinds import Kind
from incdsi.engine.milvus.layout import Names
from tests.milvus_server import ADDRESS

HAS_LITE = importlib.util.find_spec("milvus_lite") is not None and importlib.util.find_spec("pymilvus") is not None
REQUIRED = os.environ.get("INCDSI_REQUIRE_MILVUS") == "1"  # skipping is for laptops
FOLDER = "folder"
FRESH = "fresh"  # begins names where there never was anything
Place = Callable[[str], Any]
LIVES_FOR = 1.0  # seconds: so long a test waits for a writer that is gone


def lite(heavy: bool) -> Any:
    """Milvus Lite in this process; what makes thousands of calls is slow there."""
    marks = [pytest.mark.skipif(not HAS_LITE and not REQUIRED, reason="milvus-lite is not installed")]
    return pytest.param("lite", marks=[*marks, pytest.mark.slow] if heavy else marks)


def server(heavy: bool) -> Any:
    """A real server, which `make test-milvus` starts."""
    missing = pytest.mark.skipif(ADDRESS not in os.environ, reason="no Milvus server; `make test-milvus` starts one")
    marks = [pytest.mark.milvus, missing]
    return pytest.param("server", marks=[*marks, pytest.mark.slow] if heavy else marks)


def places(kind: str, folder: Path) -> Iterator[Callable[[str], Any]]:
    """A function from names to where indexes of that name live; leaves nothing behind."""
    if kind == FOLDER:
        yield lambda name: folder / name
    elif kind == "lite":
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
    """Names from a pool: making and loading collections takes a server seconds, emptying them a moment."""
    own: dict[str, str] = {}

    def place(name: str) -> str:
        if name not in own:
            reuse = _FREE and not name.startswith(FRESH)
            own[name] = _FREE.pop() if reuse else f"pool{next(_NUMBERS)}_{uuid.uuid4().hex[:8]}"
        plain = own[name]
        return f"milvus://{address}/{plain}"

    with (
        patch("incdsi.engine.milvus.lease.LIVES_FOR", LIVES_FOR),
        patch("incdsi.engine.milvus.engine._make", partial(_make_or_reuse, engine._make)),
    ):
        yield place
    for plain in own.values():
        connection = Connection(parse(f"milvus://{address}/{plain}"))
        if _emptied(connection, plain):
            _FREE.append(plain)
        connection.close()


def _make_or_reuse(make: Callable[..., None], connection: Connection, names: Names, width: int, kind: Kind) -> None:
    if names.index in _EMPTY and width == WIDTH and not kind.approximate:
        _EMPTY.discard(names.index)
    else:
        make(connection, names, width, kind)
        _MADE[names.index] = -1 if kind.approximate else width


def _emptied(connection: Connection, index: str) -> bool:
    """Whether the index is as good as new: not with collections of another width, or of a later generation alone."""
    first, found = Names(index), connection.collections(f"{index}__")
    kept = {first.log, first.documents, first.queries}
    if _MADE.get(index) != WIDTH or not kept <= set(found):
        kept = set()
    for name in found:
        if name not in kept:
            connection.drop(name)
            continue
        connection.load(name)
        while keys := [row["key"] for row in connection.query(name, "key >= 0", [], STRONG)]:
            connection.delete(name, keys)
    if kept:
        _EMPTY.add(index)
    return bool(kept)


WIDTH = 24  # of nearly every index in these tests
_FREE: list[str] = []
_EMPTY: set[str] = set()
_MADE: dict[str, int] = {}  # widths
_NUMBERS = count()
