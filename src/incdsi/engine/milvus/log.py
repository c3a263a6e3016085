"""The log: what was committed, in order. One row is one commit, and a commit is there whole or not at all."""

from __future__ import annotations

import base64
import time
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from incdsi.engine.milvus.connection import STRONG, Connection
from incdsi.engine.milvus.found import Row
from incdsi.engine.milvus.layout import FORMAT, LOG, MARK, Names, Place, epoch_of, first_key, joined, pieces
from incdsi.errors import IndexNotFound, UnsupportedFormat
from incdsi.records import JSON, Answer

COMMIT, PART, ANSWER, BEAT = range(4)  # kinds of rows
WIDTH = 2  # of the vectors that every collection must have
LAST = 2**63 - 1
PAGE = 256  # commits read in one call
AT_MOST = 4000  # places in one row; more are written before the commit, in parts
KEPT_FOR = 24 * 3600.0  # seconds an answer is kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One change of an index. `base` is the last commit that counts of the writer before, where a new one begins.

    `since` is the server's time from which on the rows it speaks of can be read. One that is `whole` says everything
    there is; those before it do not count any more. Rows that commits up to `purged` replaced are deleted.
    """

    key: int
    version: int
    next_row: int
    generation: int
    since: int = 1
    base: int | None = None
    whole: bool = False
    purged: int = 0
    puts: tuple[Place, ...] = ()
    gone: tuple[int, ...] = ()
    settings: Mapping[str, JSON] = field(default_factory=dict)
    answers: Mapping[str, int] = field(default_factory=dict)
    at: float = field(default_factory=time.time)

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "next_row": self.next_row,
            "generation": self.generation,
            "since": self.since,
            "base": self.base,
            "whole": self.whole,
            "purged": self.purged,
            "puts": [put.to_json() for put in self.puts],
            "gone": list(self.gone),
            "settings": dict(self.settings),
            "answers": dict(self.answers),
            "at": self.at,
        }

    @classmethod
    def from_json(cls, key: int, plain: Mapping[str, Any], parts: Iterable[Sequence[int]]) -> Commit:
        own = {name: plain[name] for name in cls.__slots__ if name not in ("key", "puts", "gone", "answers")}
        puts = tuple(Place(*place) for place in (*plain["puts"], *parts))
        return cls(key=key, puts=puts, gone=tuple(plain["gone"]), answers=dict(plain["answers"]), **own)


class Log:
    """The rows of an index's log."""

    def __init__(self, connection: Connection, index: str) -> None:
        self._connection = connection
        self._name = Names(index).log

    @property
    def is_there(self) -> bool:
        return self._connection.has(self._name)

    def create(self) -> None:
        """Make an empty log, if there is none."""
        if not self.is_there and self._connection.create(self._name, LOG, WIDTH):
            self._connection.index(self._name)
        self.open()

    def open(self) -> None:
        """Refuse what is no index of this format; make it readable."""
        if not self.is_there:
            raise IndexNotFound(f"no index at {self._connection.address}; create one or check the name")
        formats = [field.removeprefix(MARK) for field in self._connection.fields(self._name) if field.startswith(MARK)]
        if not formats:
            raise UnsupportedFormat(
                f"the collection {self._name} at {self._connection.address} was not made by incdsi; take another name"
            )
        if formats != [str(FORMAT)]:
            raise UnsupportedFormat(
                f"the index at {self._connection.address} has format {formats[0]} and this incdsi knows format "
                f"{FORMAT}; upgrade incdsi"
            )
        self._connection.load(self._name)

    def append(self, commit: Commit, part_keys: Iterable[int]) -> None:
        """Write a commit; places that are too many for one row go before it."""
        body, parts = commit.to_json(), []
        if len(commit.puts) > AT_MOST:
            places, body["puts"] = body["puts"], []
            keys = iter(part_keys)
            for start in range(0, len(places), AT_MOST):
                parts.append(self._row(next(keys), PART, places[start : start + AT_MOST]))
            self._connection.insert(self._name, parts)
        body["parts"] = [part["key"] for part in parts]
        self._connection.insert(self._name, [self._row(commit.key, COMMIT, body)])

    def after(self, last: int, since: int) -> list[Commit]:
        """The commits that count with greater keys, in order."""
        rows = {int(row["key"]): row for row in self._between(last, LAST, since)}
        plain = {key: joined(rows[key]["body"]) for key in sorted(rows)}
        bases = {epoch_of(key): body["base"] for key, body in plain.items() if body["base"] is not None}
        return [self._commit(key, plain[key], since) for key in plain if _counts(key, bases)]

    def _between(self, low: int, high: int, since: int) -> list[Row]:
        """All commits above one key and up to another; in halves where one call does not return them all."""
        here = f"kind == {COMMIT} and key > {low} and key <= {high}"
        found = self._connection.query(self._name, here, ["body"], since, PAGE)
        keys = sorted({int(row["key"]) for row in found})
        if len(found) < PAGE or len(keys) < 2:
            return found
        middle = keys[len(keys) // 2 - 1]
        return self._between(low, middle, since) + self._between(middle, high, since)

    def _commit(self, key: int, plain: Mapping[str, Any], since: int) -> Commit:
        parts: list[Sequence[int]] = []
        if plain["parts"]:
            found = self._connection.get(self._name, plain["parts"], ["body"], since)
            parts = [place for part in plain["parts"] for place in joined(found[part]["body"])]
        return Commit.from_json(key, plain, parts)

    def forget_before(self, key: int) -> None:
        """Delete all rows with lesser keys but signs of life, after a commit that is whole."""
        while found := self._connection.query(self._name, f"key < {key} and kind != {BEAT}", [], STRONG, PAGE):
            self._connection.delete(self._name, [int(row["key"]) for row in found])

    # Answers

    def keep_answer(self, key: int, answer: Answer) -> None:
        """Write what a commit that follows will name."""
        body = [answer.request.hex(), answer.status, _packed(answer.content), answer.version]
        self._connection.insert(self._name, [self._row(key, ANSWER, body)])

    def answer(self, key: int) -> Answer | None:
        found = self._connection.get(self._name, [key], ["body"], STRONG)
        if key not in found:
            return None
        request, status, content, version = joined(found[key]["body"])
        return Answer(bytes.fromhex(request), status, _unpacked(content), version)

    # Signs of life

    def beat(self, key: int, last: int | None) -> None:
        """Write that the writer is alive, and forget the last time it did."""
        self._connection.insert(self._name, [self._row(key, BEAT, [])])
        if last is not None:
            self._connection.delete(self._name, [last])

    def life(self, epoch: int) -> int:
        """The greatest key that a writer has written here; grows as long as it lives."""
        here = f"key >= {first_key(epoch)} and key < {first_key(epoch + 1)} and kind in [{COMMIT}, {BEAT}]"
        return max((int(row["key"]) for row in self._connection.query(self._name, here, [], STRONG)), default=0)

    def _row(self, key: int, kind: int, plain: Any) -> dict[str, Any]:
        mark = {f"{MARK}{FORMAT}": 0}  # it has to be there
        return {"key": key, "kind": kind, "body": pieces(plain), "v": np.zeros(WIDTH, dtype=np.float32), **mark}


def _counts(key: int, bases: Mapping[int, int]) -> bool:
    """Whether it is no late commit of a writer that another had taken over from."""
    later = [base for epoch, base in bases.items() if epoch > epoch_of(key)]
    return not later or key <= min(later)


def _packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def _unpacked(text: str) -> bytes:
    return zlib.decompress(base64.b64decode(text))
