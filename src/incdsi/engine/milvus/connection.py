"""The few calls that this engine makes, each with the time it may take and an error in our words."""

from __future__ import annotations

import importlib
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.engine.addresses import TLS, TOKEN, Address
from incdsi.engine.milvus.found import VECTOR, Hits, Keys, Row, hits_of, rows_of
from incdsi.engine.milvus.kinds import CHOICE, FLAT, Kind, named
from incdsi.errors import (
    IncDSIError,
    InvalidInput,
    MissingExtra,
    NotAllowed,
    ServerError,
    ServerUnavailable,
    UnsupportedFormat,
)

OLDEST = (2, 3, 2)  # the first with arrays
MOST_HITS = 16_384  # that one search may return
AT_ONCE = 512  # rows fetched by key in one call
MOST_BYTES = 4 << 20  # of rows inserted in one call: Pulsar takes 5 MB
UNSETTLED = 1024  # rows that Lite may keep in its log: each search converts all of them, one by one
MANY = 10_000  # rows that are worth a segment of their own
CONNECTS_IN, ANSWERS_IN = 10.0, 30.0  # seconds
_CHANNEL = {  # a server that is back is found within seconds: gRPC would wait two minutes between two tries
    "grpc.initial_reconnect_backoff_ms": 200,
    "grpc.max_reconnect_backoff_ms": 2000,
    "grpc.min_reconnect_backoff_ms": 5000,  # what one try may take
}
_REFUSED = ("unauthenticated", "auth check", "authentication", "credential", "permission", "privilege")
_SILENT = ("unavailable", "connect", "deadline", "timeout", "timed out", "closed channel", "run out")
_BEGINNING = ("not loaded", "not ready", "not healthy", "offline", "not available", "no available")
BUILDS_IN = 600.0  # seconds in which a server gets on with an index: it counts whole segments
STRONG = 0  # a time no read may be older than: everything that was acknowledged anywhere


class Connection:
    """One server, or one file of Milvus Lite in this process; any number of threads may use it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.calls: Counter[str] = Counter()  # by kind: what benchmarks report
        self.moved: Counter[str] = Counter()  # rows sent and received, and those received with vectors
        self._unsettled: Counter[str] = Counter()  # rows written since the last flush, by collection
        self._counting = threading.Lock()
        self._pymilvus = _pymilvus()
        if address.certificate and not Path(address.certificate).is_file():
            raise InvalidInput(f"{TLS} names no file: {address.certificate}; give it the server's certificate, or 1")
        with self._clear_errors("connect"):
            self._client = self._pymilvus.MilvusClient(
                uri=address.uri,
                token=address.token,
                timeout=CONNECTS_IN,
                dedicated=True,  # the shared ones are told apart by address and key alone, and never closed
                grpc_options=_CHANNEL,
                **({"server_pem_path": address.certificate} if address.certificate else {}),
            )
        self._require_recent()

    def close(self) -> None:
        self._client.close()

    # Collections

    def collections(self, prefix: str) -> list[str]:
        """The names of those that begin so."""
        with self._clear_errors("list"):
            return [name for name in self._client.list_collections(timeout=ANSWERS_IN) if name.startswith(prefix)]

    def has(self, name: str) -> bool:
        with self._clear_errors("has"):
            return bool(self._client.has_collection(name, timeout=ANSWERS_IN))

    def fields(self, name: str) -> set[str]:
        """The names of a collection's fields."""
        with self._clear_errors("describe"):
            found = self._client.describe_collection(name, timeout=ANSWERS_IN)["fields"]
        return {str(field["name"]) for field in found}

    def create(self, name: str, fields: Mapping[str, Mapping[str, Any]], width: int) -> bool:
        """Make a collection of these fields, a key and vectors of this width; False when there is one of that name.

        Of several who try at once one succeeds, but a server also takes it for done when there is exactly such a one:
        who wants to be the only one names a field that nobody else does. `index` and `load` make it searchable.
        """
        types = self._pymilvus.DataType
        schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("key", types.INT64, is_primary=True)
        for field, how in fields.items():
            plain = {key: types[value] if key.endswith("type") else value for key, value in how.items()}
            schema.add_field(field, **plain)
        schema.add_field("v", types.FLOAT_VECTOR, dim=width)
        try:
            with self._clear_errors("create"):
                self._client.create_collection(
                    name, schema=schema, num_shards=1, consistency_level="Strong", timeout=ANSWERS_IN
                )
        except ServerError:
            if not self.has(name):
                raise
        return set(fields) < self.fields(name)

    def index(self, name: str, kind: Kind = FLAT) -> None:
        """Say how a collection is searched."""
        if self.address.lite and kind.name == "diskann":
            raise InvalidInput(f"Milvus Lite has no DiskANN; set {CHOICE} to hnsw or ivf")
        params = self._client.prepare_index_params()
        params.add_index("v", index_type=kind.milvus, metric_type="IP", params=dict(kind.build))
        with self._clear_errors("index"):
            self._client.create_index(name, params, sync=False, timeout=ANSWERS_IN)

    def kind_of(self, name: str) -> Kind:
        """How a collection is searched."""
        with self._clear_errors("describe"):
            return named(str(self._client.describe_index(name, "v", timeout=ANSWERS_IN)["index_type"]))

    def load(self, *names: str) -> None:
        """Make collections searchable, if they are not, all at the same time: each takes a server seconds."""
        with ThreadPoolExecutor(len(names)) as threads:
            list(threads.map(self._load, names))

    def _load(self, name: str) -> None:
        with self._clear_errors("load"):
            self._client.load_collection(name, timeout=10 * ANSWERS_IN)

    def build(self, name: str) -> None:
        """Have a collection's index built over everything in it; ServerError when the server does not get on."""
        self._flush(name)
        left, since = -1, time.monotonic()
        while (now := self._pending(name)) > 0:
            if now != left:
                left, since = now, time.monotonic()
            elif time.monotonic() - since > BUILDS_IN:
                raise ServerError(
                    f"Milvus at {self.address} does not build the index it was asked for; set {CHOICE} to another"
                )
            time.sleep(0.2)

    def _flush(self, name: str) -> None:
        del self._unsettled[name]
        with self._clear_errors("flush"):
            self._client.flush(name, timeout=10 * ANSWERS_IN)

    def _pending(self, name: str) -> int:
        """How many rows are not in the index yet."""
        with self._clear_errors("describe"):
            found = self._client.describe_index(name, "v", timeout=ANSWERS_IN)
        return int(found.get("pending_index_rows", 0))

    def compact(self, name: str) -> None:
        """Ask for the room of deleted rows back; the server takes its time."""
        with self._clear_errors("compact"):
            self._client.compact(name, timeout=ANSWERS_IN)

    def drop(self, name: str) -> None:
        """Remove a collection, if it is there."""
        del self._unsettled[name]
        with self._clear_errors("drop"):
            self._client.drop_collection(name, timeout=ANSWERS_IN)

    # Rows

    def insert(self, name: str, rows: Sequence[Row]) -> int:
        """Add rows; the server's time from which on every read sees them."""
        latest = 0
        for some in _portions(rows):
            with self._clear_errors("insert"):
                connection = self._client._get_connection()
                done = connection.insert_rows(
                    name, some, timeout=ANSWERS_IN, context=self._client._generate_call_context()
                )
                latest = max(latest, int(done.timestamp))
            self._count("sent", len(some))
            self._unsettled[name] += len(some)
        if self.address.lite and self._unsettled[name] > UNSETTLED:
            self._flush(name)
        return latest

    def settle(self) -> None:
        """Where much was written, have it sealed: a server searches that several times as quickly."""
        for name in [name for name, rows in self._unsettled.copy().items() if rows >= MANY]:
            self._flush(name)

    def delete(self, name: str, keys: Iterable[int]) -> None:
        wanted = list(keys)
        for start in range(0, len(wanted), AT_ONCE):
            with self._clear_errors("delete"):
                self._client.delete(name, ids=wanted[start : start + AT_ONCE], timeout=ANSWERS_IN)

    def get(self, name: str, keys: Sequence[int] | Keys, fields: Sequence[str], since: int) -> dict[int, Row]:
        """Those of these rows that are there, by key."""
        wanted = np.unique(np.asarray(keys, dtype=np.int64)).tolist()
        found: dict[int, Row] = {}
        for start in range(0, len(wanted), AT_ONCE):
            some = wanted[start : start + AT_ONCE]
            found |= {int(row["key"]): row for row in self.query(name, f"key in {some}", fields, since)}
        return found

    def query(self, name: str, where: str, fields: Sequence[str], since: int, limit: int = MOST_HITS) -> list[Row]:
        """At most so many rows that pass an expression, in any order."""
        with self._clear_errors("query"):
            found = self._client.query(
                name,
                filter=where,
                output_fields=["key", *fields],
                limit=limit,
                timeout=ANSWERS_IN,
                **_as_of(since),
            )
        self._received(len(found), fields)
        return rows_of(found)

    def search(
        self,
        name: str,
        vectors: NDArray[np.float32],
        limit: int,
        since: int,
        *,
        where: str = "",
        fields: Sequence[str] = (),
        kind: Kind = FLAT,
    ) -> list[Hits]:
        """For each vector (b, width) at most so many rows, by inner product, best first."""
        with self._clear_errors("search"):
            found = self._client.search(
                name,
                data=list(vectors),
                limit=min(limit, MOST_HITS),
                filter=where,
                output_fields=list(fields) or ["key"],
                search_params=kind.search(min(limit, MOST_HITS)),
                timeout=ANSWERS_IN,
                **_as_of(since),
            )
        self._received(sum(len(hits.ids) for hits in found), fields)
        return [hits_of(hits, fields) for hits in found]

    # Inside

    def _received(self, rows: int, fields: Sequence[str]) -> None:
        self._count("received", rows)
        if VECTOR in fields:
            self._count("vectors", rows)

    def _count(self, what: str, rows: int) -> None:
        with self._counting:
            self.moved[what] += rows

    def _require_recent(self) -> None:
        with self._clear_errors("version"):
            version = str(self._client.get_server_version(timeout=ANSWERS_IN))
        numbers = re.search(r"(\d{1,9})\.(\d{1,9})\.(\d{1,9})", version)
        if self.address.lite or numbers is None:
            return
        if tuple(map(int, numbers.groups())) < OLDEST:
            self.close()
            raise UnsupportedFormat(
                f"Milvus {version} at {self.address} is too old; incdsi needs {'.'.join(map(str, OLDEST))} or newer"
            )

    @contextmanager
    def _clear_errors(self, call: str) -> Iterator[None]:
        with self._counting:
            self.calls[call] += 1
        try:
            yield
        except IncDSIError:
            raise
        except Exception as error:
            if not _is_milvus(error):
                raise
            raise self._clear(error) from error

    def _clear(self, error: Exception) -> IncDSIError:
        said = " ".join(str(getattr(error, "message", error)).split())[:300]
        folded = f"{said} {error.__cause__ or ''}".casefold()
        if _has(folded, _REFUSED):
            wants = "another key than the one in" if self.address.token else "a key; put it in"
            return NotAllowed(f"Milvus at {self.address} wants {wants} {TOKEN}, user:password of one who may write")
        if _has(folded, ("ssl", "tls", "certificate")):
            return ServerUnavailable(f"no TLS with Milvus at {self.address}; check {TLS} and the server's certificate")
        if _has(folded, _SILENT) or type(error).__name__ in ("ConnectError", "MilvusUnavailableException"):
            return ServerUnavailable(
                f"no Milvus answers at {self.address}; start it, or check the address, the network and {TLS}"
            )
        if _has(folded, _BEGINNING):
            return ServerUnavailable(f"Milvus at {self.address} is not ready; wait until it has loaded its collections")
        return ServerError(f"Milvus at {self.address} refused: {said}")


def _has(said: str, signs: Sequence[str]) -> bool:
    return any(sign in said for sign in signs)


def _is_milvus(error: Exception) -> bool:
    origin = type(error).__module__.split(".")[0]
    return origin in ("pymilvus", "grpc") or isinstance(error, ConnectionError | TimeoutError)


def _as_of(since: int) -> dict[str, Any]:
    """At least as new as that time of the server."""
    if since == STRONG:
        return {"consistency_level": "Strong"}
    return {"consistency_level": "Customized", "guarantee_timestamp": since}


def _portions(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Rows that one call takes; one that is larger goes alone."""
    some: list[Row] = []
    size = 0
    for row in rows:
        bytes_ = sum(_size(value) for value in row.values())
        if some and size + bytes_ > MOST_BYTES:
            yield some
            some, size = [], 0
        some.append(row)
        size += bytes_
    if some:
        yield some


def _size(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, str):
        return len(value)
    return sum(map(_size, value)) if isinstance(value, list) else 256 if isinstance(value, dict) else 8


def _pymilvus() -> Any:
    try:
        module = importlib.import_module("pymilvus")
    except ImportError:
        raise MissingExtra(
            "an index on Milvus needs its client; install it with: pip install 'incdsi[milvus]'"
        ) from None
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL + 1)  # it prints what it raises
    return module
