"""The verbs of an index over HTTP; `Index.open("http://...")` returns one."""

from incdsi.client.asynchronous import AsyncRemoteIndex
from incdsi.client.remote import RemoteIndex, kept_gaps

__all__ = ["AsyncRemoteIndex", "RemoteIndex", "kept_gaps"]
