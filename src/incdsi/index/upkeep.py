"""What keeps an index well: tuning, another encoder, checks, backups, receipts."""

from __future__ import annotations

from pathlib import Path

from incdsi.engine.protocol import Engine
from incdsi.index.drafting import Drafting
from incdsi.index.reader import Reader
from incdsi.index.receipts import Receipts
from incdsi.index.session import Session
from incdsi.index.tuning import Tuner
from incdsi.index.writer import Writer
from incdsi.info import Tuning
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator
from incdsi.text.passages import Splitter


class Upkeep(Reader):
    """A reader that also writes, and all it does that is not about one document."""

    def __init__(
        self,
        engine: Engine,
        encoder: Encoder | str | Path | None = None,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
    ) -> None:
        super().__init__(Session(engine, encoder))
        self._writer = Writer(self._session, generator, splitter)
        self._tuner = Tuner(self._session)
        self.receipts = Receipts(self._session, self._writer)
        self.drafting = Drafting(self._writer)

    def verify(self) -> list[str]:
        """Read every byte; what is wrong with it, one sentence each, or nothing."""
        return self.engine.verify()

    def backup(self, target: Path | str, progress: Progress | None = None) -> None:
        """Copy the index as it is at one moment to a new folder, while reading and writing go on."""
        self.engine.backup(target, progress=progress)

    def resolve(self, progress: Progress | None = None) -> int:
        """Place again whatever was placed beside a document deleted since; how many. Each is kept as it is placed."""
        with self.engine.changing(None):
            return self._writer.resolve(progress)

    def tune(self, progress: Progress | None = None) -> Tuning:
        """Choose weights and fusion by the held-out queries and place all documents by them; what it gained."""
        with self.engine.changing(None):
            return self._tuner.tune(progress)

    def set_tuning(self, on: bool) -> None:
        """Whether the index holds queries out and tunes itself, from now on; a paper index never does."""
        with self.engine.changing(None):
            self._tuner.switch(on)

    def adopt(self, encoder: Encoder, progress: Progress | None = None) -> None:
        """Embed and place everything anew under another encoder, then swap it in at once; searches go on.

        Weights and fusion are then chosen for it, if enough queries are held out.
        The old one's files go when nobody reads by it any more: now, or when the index is next changed.
        """
        with self.engine.changing(None):
            self._session.adopt(encoder, progress)
            self._tuner.tune_if_due(progress)

    def compact(self) -> None:
        """Leave no byte of what was deleted in any file, and a fresh base for quick opening."""
        with self.engine.changing(None):
            self.engine.compact()
