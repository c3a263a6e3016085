"""The verbs of an index over HTTP; `Index.open("http://...")` returns one."""

from typing import TYPE_CHECKING, Any

from incdsi.client.remote import RemoteIndex, kept_gaps

if TYPE_CHECKING:
    from incdsi.client.asynchronous import AsyncRemoteIndex

__all__ = ["AsyncRemoteIndex", "RemoteIndex", "kept_gaps"]


def __getattr__(name: str) -> Any:
    # It brings asyncio, which a search from a shell does not need.
    if name == "AsyncRemoteIndex":
        from incdsi.client.asynchronous import AsyncRemoteIndex

        return AsyncRemoteIndex
    raise AttributeError(f"module 'incdsi.client' has no attribute {name!r}")
