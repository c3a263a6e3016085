"""Where an index on Milvus is: milvus://host:port/name, or milvus+lite:///folder/name for one in this process."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from incdsi.errors import InvalidInput

SERVER, LITE = "milvus", "milvus+lite"
EXAMPLE = "milvus://127.0.0.1:19530/shop"
TOKEN, TLS = "INCDSI_MILVUS_TOKEN", "INCDSI_MILVUS_TLS"
PORT = 19530
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,99}")


@dataclass(frozen=True, slots=True)
class Address:
    """What to connect to, and the index's name there; the key is never printed."""

    uri: str
    name: str
    shown: str
    token: str = field(default="", repr=False)
    certificate: str = ""

    @property
    def lite(self) -> bool:
        return self.uri.endswith(".db")

    def __str__(self) -> str:
        return self.shown


def milvus_address(place: Path | str) -> str | None:
    """The address, where a place is one of Milvus; a path has lost some of its slashes."""
    for scheme, slashes in ((SERVER, "//"), (LITE, "///")):
        if str(place).startswith(f"{scheme}:/"):
            return f"{scheme}:{slashes}{str(place)[len(scheme) + 1 :].lstrip('/')}"
    return None


def parse(text: str) -> Address:
    """The address; the key and TLS come from the environment, so that no command line shows them.

    INCDSI_MILVUS_TOKEN is `user:password` or a key; INCDSI_MILVUS_TLS is 1, or the file of the server's certificate.
    """
    parts = urlsplit(text)
    where, _, name = parts.path.rpartition("/")
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"{text!r:.120} names no index: end it with a name of letters, digits and _, such as {EXAMPLE}"
        )
    if parts.username or parts.password:
        raise InvalidInput(f"leave the key out of the address and put it in the environment variable {TOKEN}")
    if parts.scheme == LITE:
        return _lite(text, parts.netloc, where, name)
    try:
        host, port = parts.hostname, parts.port or PORT
    except ValueError:
        host, port = None, PORT
    if not host or where:
        raise InvalidInput(f"{text!r:.120} is no address of Milvus; write it as {EXAMPLE}")
    tls = os.environ.get(TLS, "")
    scheme = "https" if tls not in ("", "0") else "http"
    host = f"[{host}]" if ":" in host else host
    return Address(
        uri=f"{scheme}://{host}:{port}",
        name=name,
        shown=f"{SERVER}://{host}:{port}/{name}",
        token=os.environ.get(TOKEN, ""),
        certificate=tls if tls not in ("", "0", "1") else "",
    )


def _lite(text: str, host: str, folder: str, name: str) -> Address:
    if host or not folder.endswith(".db"):
        raise InvalidInput(
            f"{text!r:.120} is no address of Milvus Lite; write it as {LITE}:///folder/file.db/name, with three slashes"
        )
    return Address(uri=folder, name=name, shown=text)
