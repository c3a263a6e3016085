"""The verbs of an index over the wire, to be had by `Index.open("http://...")`."""

from incdsi.client.asynchronous import AsyncRemoteIndex
from incdsi.client.remote import RemoteIndex

__all__ = ["AsyncRemoteIndex", "RemoteIndex"]
