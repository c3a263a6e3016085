"""An index that is open: its engine, and the encoder of whatever moment is searched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from incdsi.engine.protocol import Engine
from incdsi.engine.settings import Settings
from incdsi.errors import DamagedBase, InvalidFile, ModelNotFound
from incdsi.index.draft import reencoded
from incdsi.index.replacement import Replacement, replaced
from incdsi.index.snapshot import Snapshot
from incdsi.progress import Progress
from incdsi.text.encoders import Encoder

T = TypeVar("T")


class Session:
    """What the verbs share: the engine, the encoders it was opened or searched with, and how much is held out."""

    def __init__(self, engine: Engine, encoder: Encoder | str | Path | None = None) -> None:
        self.engine = engine
        self._encoders: dict[str, Encoder] = {}
        self._held_out: int | None = None
        self._snapshot(given=encoder)

    @property
    def settings(self) -> Settings:
        return self.current().settings

    @property
    def encoder(self) -> Encoder:
        return self.current().encoder

    def current(self) -> Snapshot:
        """What there is to search, with everything other processes have written by now."""
        return self._snapshot()

    def reading(self, work: Callable[[Snapshot], T]) -> T:
        """What this work makes of all there is; made once more where the base turned out to be damaged."""
        try:
            return work(self.current())
        except DamagedBase:
            return work(self.current())  # by the store

    def _snapshot(self, given: Encoder | str | Path | None = None) -> Snapshot:
        """A view and its encoder; when another is swapped in before this one could be opened, that one."""
        view = self.engine.view()
        while (encoder := self._encoders.get(view.settings.fingerprint)) is None:
            try:
                opened = self.engine.encoder(view.settings, given)
                self._encoders = {opened.fingerprint: opened}
            except (ModelNotFound, InvalidFile):
                before, view = view, self.engine.view()
                if view.settings.fingerprint == before.settings.fingerprint:
                    raise
        return Snapshot(engine=self.engine, view=view, encoder=encoder)

    # For whoever holds the lock

    @property
    def held_out(self) -> int:
        """Queries that are held out; some of them may have gone with their documents since it was `counted`."""
        if self._held_out is None:
            self._held_out = self.engine.held_out()
        return self._held_out

    def hold_out(self, more: int) -> None:
        """So many more are held out."""
        self._held_out = self.held_out + more

    def count_held_out(self) -> int:
        """Count them anew."""
        self._held_out = None
        return self.held_out

    def save(self, settings: Settings) -> None:
        """Settings that place no document otherwise."""
        with self.engine.write() as batch:
            batch.save(settings)

    def swap(self, new: Replacement) -> None:
        """Everything placed anew, at once."""
        self.engine.swap(new.bench, new.records(), new.settings, new.beside)

    def adopt(self, encoder: Encoder, progress: Progress | None) -> None:
        """Keep another encoder, embed and place everything anew under it, and swap it in at once."""
        settings = replace(
            self.settings,
            fingerprint=encoder.fingerprint,
            dimension=encoder.dimension,
            model=self.engine.keep_encoder(encoder),
            tuned_at=0,  # all that was chosen was chosen by other scores
            fused_at=0,
            asked_at=0,
            confidence=None,
        )
        records = reencoded(list(self.engine.records()), encoder, settings.one_pass, progress)
        new = replaced(self.engine.bench(settings), records, settings, progress)
        self._encoders = {**self._encoders, encoder.fingerprint: encoder}  # before anybody needs it
        self.swap(new)
        self.engine.drop_old_encoders()
