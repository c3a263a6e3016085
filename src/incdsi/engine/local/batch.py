"""One change of a folder: what it stores, and what will be seen of it."""

from __future__ import annotations

from incdsi.engine.settings import KEY, Settings
from incdsi.records import JSON, Answer, Record
from incdsi.store.transaction import Transaction


class LocalBatch:
    """A transaction, and what it will show."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self.records: list[Record] = []
        self.removed: list[int] = []
        self.settings: Settings | None = None

    @property
    def version(self) -> int:
        return self._transaction.version

    def insert(self, record: Record) -> None:
        row = self._transaction.insert(record)
        if row != record.row:  # whoever was placed by it would be known by another
            raise RuntimeError(f"document {record.document.id!r} was placed as row {record.row} and stored as {row}")
        self.records.append(record)

    def replace(self, record: Record) -> None:
        self._transaction.replace(record.document.id, record)
        self.records.append(record)

    def delete(self, id: str) -> int:
        self.removed.append(self._transaction.delete(id))
        return self.removed[-1]

    def save(self, settings: Settings) -> None:
        """Settings that place no document otherwise."""
        self.settings = settings.stemmed_now
        self._transaction.set_setting(KEY, self.settings.to_json())

    def set_setting(self, key: str, value: JSON) -> None:
        self._transaction.set_setting(key, value)

    def keep_answer(self, key: str, answer: Answer) -> None:
        self._transaction.keep_answer(key, answer)
