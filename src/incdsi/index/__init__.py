"""The one place where text, solver, rows, store and words meet."""

from typing import TYPE_CHECKING, Any

from incdsi.index.index import Index

if TYPE_CHECKING:
    from incdsi.index.asynchronous import AsyncIndex

__all__ = ["AsyncIndex", "Index"]


def __getattr__(name: str) -> Any:
    # It brings asyncio and a client, which a search from a shell does not need.
    if name == "AsyncIndex":
        from incdsi.index.asynchronous import AsyncIndex

        return AsyncIndex
    raise AttributeError(f"module 'incdsi.index' has no attribute {name!r}")
