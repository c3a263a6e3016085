"""An index for asyncio as a SearchIndex, so that one suite runs over it too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

from incdsi import AsyncIndex
from incdsi.client import AsyncRemoteIndex


class Blocking:
    """Every verb of it, awaited in a loop of its own."""

    def __init__(self, index: AsyncIndex | AsyncRemoteIndex) -> None:
        self._index = index
        self._runner = asyncio.Runner()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._index, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            given = verb(*args, **kwargs)
            return self._runner.run(given) if inspect.isawaitable(given) else self._drained(given)

        return call

    def _drained(self, lines: Any) -> Iterator[Any]:
        while (line := self._runner.run(anext(lines, None))) is not None:
            yield line

    def __enter__(self) -> Blocking:
        self._runner.run(self._index.__aenter__())
        return self

    def __exit__(self, *exception: Any) -> None:
        self._runner.run(self._index.__aexit__(*exception))
        self._runner.close()

    def __len__(self) -> int:
        return self._runner.run(self._index.count())

    def __contains__(self, id: object) -> bool:
        return self._runner.run(self._index.contains(id))

    @property
    def version(self) -> int:
        return self._runner.run(self._index.version())
