"""Address, key and patience: what the two clients share."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, ClassVar

from incdsi.errors import IncDSIError, InvalidInput, MissingExtra, NeedsFolder, Overloaded, ServerUnavailable

if TYPE_CHECKING:
    import httpx2

    from incdsi.client.calls import Call

KEY = "INCDSI_KEY"
PATIENCE = 10.0  # seconds to keep retrying a server that is busy or away
CONNECT = 10.0  # seconds to reach it at all
FIRST_PAUSE = 0.1
FOLDER_ONLY = (
    "adopt",
    "attach",
    "backup",
    "compact",
    "last_tuning",
    "resolve",
    "set_tuning",
    "tune",
    "verify",
)


def http() -> Any:
    """The HTTP library; MissingExtra without it."""
    try:
        import httpx2
    except ImportError as error:
        raise MissingExtra("httpx2 is not installed; run: pip install 'incdsi[server]'") from error
    return httpx2


def options(url: str, key: str | None, timeout: float) -> dict[str, Any]:
    """Arguments of an HTTP client; refuses a key inside the address, where it would be logged."""
    library = http()
    try:
        address = library.URL(url)
    except (library.InvalidURL, TypeError) as error:
        raise InvalidInput(f"{url!r} is not an address like http://127.0.0.1:7799 ({error})") from error
    if not address.host:
        raise InvalidInput(f"{url!r} has no host; an address looks like http://127.0.0.1:7799")
    if address.userinfo:
        raise InvalidInput("the address contains a user name or key; pass it as `key` instead")
    chosen = key if key is not None else os.environ.get(KEY)
    waits = library.Timeout(timeout, connect=min(timeout, CONNECT))
    headers = {"Authorization": f"Bearer {chosen}"} if chosen else {}
    return {"base_url": str(address).rstrip("/"), "headers": headers, "timeout": waits}


def unreachable(error: httpx2.TransportError, index: Remote) -> ServerUnavailable:
    """Whatever went wrong on the way."""
    if isinstance(error, http().ReadTimeout):
        return ServerUnavailable(
            f"{index.url} gave no answer within {index.timeout:g} s; pass a longer timeout if it is at work"
        )
    advice = "is it http:// instead?" if "SSL" in str(error) else "is it running?"
    return ServerUnavailable(f"no incdsi server answers at {index.url} ({error}); {advice}")


def waits(call: Call[object], error: IncDSIError) -> bool:
    """Whether to ask again, for a write that may still be under way: the server knows it by its key."""
    return call.keyed and isinstance(error.__cause__, http().ReadTimeout)


class Patience:
    """How long to keep retrying: `pause` returns the seconds to wait before the next try, or raises the error."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._next = FIRST_PAUSE

    def pause(self, error: IncDSIError) -> float:
        wait = max(self._next, error.retry_after) if isinstance(error, Overloaded) else self._next
        if time.monotonic() + wait > self._until:
            raise error
        self._next *= 2
        return wait


class Remote:
    """An index behind a server; one that is busy or away is retried for `patience` seconds.

    It has `timeout` seconds to answer. A write may take longer: it is waited for as long as the server is there.
    """

    _kind: ClassVar[str]  # of the HTTP library's clients

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 60.0, patience: float = PATIENCE) -> None:
        self.url = url
        self.timeout = timeout
        self._patience = patience
        self._http = getattr(http(), self._kind)(**options(url, key, timeout))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in FOLDER_ONLY:
                raise NeedsFolder(f"{name} is not available over HTTP; open the index's folder where the server runs")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
