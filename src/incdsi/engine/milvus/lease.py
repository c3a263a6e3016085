"""One writer at a time, by a collection that only one can make.

Milvus has no compare-and-set, but of several who create a collection of the same name one succeeds. Each writer makes
one of its own number, removes the one before, and then reads the log once more. A writer acknowledges a commit only
after it has seen that its collection is still there: so whoever takes over reads all that was ever acknowledged.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator

from incdsi.engine.milvus.connection import Connection
from incdsi.engine.milvus.layout import Names, epoch_of, first_key
from incdsi.engine.milvus.log import WIDTH, Log
from incdsi.errors import IncDSIError, IndexLocked

logger = logging.getLogger("incdsi")
LIVES_FOR = 10.0  # seconds without a sign of life after which a writer is taken for dead
BEATS = 5  # signs of life in that time


class Lease:
    """Held from `taken` to `release`, or until somebody takes it; gives out the keys of this writer."""

    def __init__(self, connection: Connection, log: Log, names: Names, epoch: int, upkeep: Callable[[], None]) -> None:
        self.epoch = epoch
        self._connection = connection
        self._log = log
        self._name = f"{names.leases}{epoch}"
        self._next = {"document": first_key(epoch), "query": first_key(epoch), "log": first_key(epoch)}
        self._counting = threading.Lock()
        self._upkeep = upkeep
        self._done = threading.Event()
        self.lost = False  # somebody was seen to have taken over
        self._beating = threading.Thread(target=self._beat, name=f"incdsi-{self._name}", daemon=True)

    @classmethod
    def taken(
        cls, connection: Connection, log: Log, names: Names, last_epoch: int, own: int, upkeep: Callable[[], None]
    ) -> Lease:
        """Become the one that writes; IndexLocked while another is alive. One's `own` needs no waiting for."""
        held = _epochs(connection, names)
        if held and max(held) != own:
            _require_dead(connection, log, max(held))
        lease = cls(connection, log, names, 1 + max(last_epoch, *held, 0), upkeep)
        mine = {f"by_{uuid.uuid4().hex}": {"datatype": "INT64"}}
        if not connection.create(lease._name, mine, WIDTH):
            raise _locked(connection)
        for epoch in held:
            connection.drop(f"{names.leases}{epoch}")
        return lease

    def begin(self) -> None:
        """Show signs of life from now on."""
        self._beating.start()

    @property
    def is_held(self) -> bool:
        """Whether nobody has taken over."""
        return self._connection.has(self._name)

    def keys(self, what: str, count: int = 1) -> range:
        """The next keys of this writer for documents, queries or the log."""
        with self._counting:
            first = self._next[what]
            self._next[what] += count
        return range(first, first + count)

    def log_keys(self) -> Iterator[int]:
        while True:
            yield self.keys("log")[0]

    def release(self) -> None:
        """Let the next writer in; harmless when repeated or when somebody has taken it."""
        self._stop()
        self._connection.drop(self._name)

    def abandon(self) -> None:
        """Stop without a word: somebody else writes, or nobody answers."""
        self._stop()

    def _stop(self) -> None:
        self._done.set()
        if self._beating.is_alive() and self._beating is not threading.current_thread():
            self._beating.join()

    def _beat(self) -> None:
        last: int | None = None
        silent = False
        while not self._done.is_set():
            try:
                (key,) = self.keys("log")
                self._log.beat(key, last)
                last = key
                self.lost = self.lost or not self.is_held
                self._upkeep()
                silent = False
            except IncDSIError as error:  # whoever writes next will be told
                if not silent:
                    logger.warning("no sign of life as a writer, trying again: %s", error)
                silent = True
            self._done.wait(LIVES_FOR / BEATS)


def _epochs(connection: Connection, names: Names) -> list[int]:
    found = (name.removeprefix(names.leases) for name in connection.collections(names.leases))
    return [int(number) for number in found if number.isdigit()]


def _require_dead(connection: Connection, log: Log, epoch: int) -> None:
    """Wait as long as a writer may be silent; clocks of two machines are never compared."""
    before, started = log.life(epoch), time.monotonic()
    while time.monotonic() - started < LIVES_FOR:
        time.sleep(LIVES_FOR / BEATS / 4)
        if epoch not in _epochs(connection, Names(connection.address.name)):
            return  # it is done
        now = log.life(epoch)
        if now != before and epoch_of(now) == epoch:
            raise _locked(connection)


def _locked(connection: Connection) -> IndexLocked:
    return IndexLocked(f"another process is writing to {connection.address}; wait for it, or stop it")
