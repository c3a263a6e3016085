"""Addresses, keys and patience: what the clients for threads and for asyncio share."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from incdsi.errors import IncDSIError, InvalidInput, MissingExtra, Overloaded, ServerUnavailable

if TYPE_CHECKING:
    import httpx2

I = TypeVar("I")  # noqa: E741 - what info() gives
KEY = "INCDSI_KEY"
PATIENCE = 10.0  # seconds for which a server that is busy or away is asked again
FIRST_PAUSE = 0.1


def http() -> Any:
    """The HTTP library; MissingExtra without it."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtra(
            "expected httpx2 to reach a server, found it not installed; run: pip install 'incdsi[server]'"
        ) from error
    return httpx2


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """What a client is made with; refuses a key inside the address, where it would be logged."""
    library = http()
    try:
        address = library.URL(url)
    except (library.InvalidURL, TypeError) as error:
        raise InvalidInput(f"expected an address like http://127.0.0.1:7799, found {url!r} ({error})") from error
    if not address.host:
        raise InvalidInput(f"expected an address like http://127.0.0.1:7799, found {url!r} without a host")
    if address.userinfo:
        raise InvalidInput("expected an address without a name or key in it, found one; give it as `key`")
    chosen = key if key is not None else os.environ.get(KEY)
    headers = {"Authorization": f"Bearer {chosen}"} if chosen else {}
    return {"base_url": str(address).rstrip("/"), "headers": headers, "timeout": library.Timeout(timeout)}


def unreachable(error: httpx2.TransportError, url: str) -> ServerUnavailable:
    """One sentence for everything that can go wrong on the way."""
    return ServerUnavailable(f"expected an incdsi server at {url}, found none answering ({error}); is it running?")


class Patience:
    """How long to go on asking: `pause` gives the seconds to wait before the next try, or raises the error."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._next = FIRST_PAUSE

    def pause(self, error: IncDSIError) -> float:
        wait = max(self._next, error.retry_after) if isinstance(error, Overloaded) else self._next
        if time.monotonic() + wait > self._until:
            raise error
        self._next *= 2
        return wait


class Remote(Generic[I]):
    """An index behind a server: where it is, how it is reached, for how many seconds a busy one is asked again."""

    _kind: ClassVar[str]  # of the HTTP library's clients

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        timeout: float = 60.0,
        patience: float = PATIENCE,
        read_info: Callable[[Mapping[str, Any]], I] = dict,  # type: ignore[assignment]
    ) -> None:
        self.url = url
        self._patience = patience
        self._read_info = read_info
        self._http = getattr(http(), self._kind)(**options(url, key, timeout))
