"""Receipts: answers stored with the changes they are for, so that a change asked for twice is made once."""

from __future__ import annotations

from contextlib import AbstractContextManager

from incdsi.index.session import Session
from incdsi.index.writer import Receipt, Writer
from incdsi.records import Answer


class Receipts:
    """What to answer whoever asks again because the first answer was lost, by key."""

    def __init__(self, session: Session, writer: Writer) -> None:
        self._session = session
        self._writer = writer

    def find(self, key: str) -> Answer | None:
        """The answer stored under that key; kept for a day, or until the index is compacted."""
        return self._session.engine.answer(key)

    def keeping(self, receipt: Receipt) -> AbstractContextManager[None]:
        """Store a receipt in the same transaction as the change made inside."""
        return self._writer.keeping(receipt)

    def amend(self, key: str, answer: Answer) -> None:
        """Replace an answer with what is known now that everything is done."""
        self._session.engine.amend_answer(key, answer)
