"""An index that is open: it follows what other processes write, and writes itself from its first change on."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from incdsi.errors import DiskFailed, DiskFull, VersionConflict
from incdsi.index import models
from incdsi.index.draft import reencoded
from incdsi.index.live import Live, preserve_nothing
from incdsi.index.replacement import Replacement, replaced
from incdsi.index.settings import KEY, Settings, stored_settings
from incdsi.index.snapshot import Snapshot
from incdsi.progress import Progress
from incdsi.store import Record, Store
from incdsi.store.connections import clear_errors
from incdsi.text.encoders import Encoder

logger = logging.getLogger("incdsi")
BASE_EVERY = 4096  # changes after which closing writes a new base


class Session:
    """A store, and the snapshot that is searched.

    Searches take what is `current` and never wait for a change. Changes are made one at a time, inside `changing`;
    whatever interrupts one, the next search sees what was committed.
    """

    def __init__(self, store: Store, encoder: Encoder) -> None:
        self.store = store
        self.held_out = 0  # queries; counted by a writer, to know when to tune
        self._reader: Store | None = None  # what was read from before writing; a search may still be using it
        self._writing = False
        self.mutex = threading.RLock()  # held by whoever changes the index
        self._following = threading.Lock()  # held by whoever replaces the snapshot: never for long
        self._behind = False
        self._snapshot = Snapshot.load(store, encoder, writer=False)

    @property
    def settings(self) -> Settings:
        return self._snapshot.settings

    @property
    def encoder(self) -> Encoder:
        return self._snapshot.encoder

    @property
    def live(self) -> Live:
        return self._snapshot.live

    def records(self) -> list[Record]:
        """Everything in the store, by row."""
        return sorted(self.store.changes(0).upserts, key=lambda record: record.row)

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base. In a forked child nothing happens."""
        if self.store.foreign:
            return
        with self.mutex:
            writing, self._writing = self._writing, False
            try:
                if writing and self.live.sequence - self._base_sequence() >= BASE_EVERY:
                    self._refresh_base()
            finally:
                if self._reader is not None:
                    self._reader.close()
                self.store.close()
                self.serve(live=Live(self.settings.dimension, preserve_nothing))  # lets go of the mapped base

    # Following

    def current(self) -> Snapshot:
        """What there is to search, with everything other processes have written by now."""
        self.store.require_usable()
        if not self._writing:
            with self._following:
                if not self._writing:
                    self._follow()
        return self._snapshot

    def serve(self, **changed: Any) -> None:
        """Replace parts of the snapshot."""
        self._snapshot = replace(self._snapshot, **changed)

    def _follow(self) -> None:
        self._behind |= self.store.poll()
        if not self._behind:
            return
        # Changes first: settings read after them that name the same encoder prove that they are by it too.
        changes = self.store.changes(self.live.sequence)
        settings = stored_settings(self.store)
        if settings.fingerprint == self.settings.fingerprint:
            try:
                live = self.live.caught_up(changes)
            except BaseException:  # half caught up: begin again, from nothing, with the next search
                self.serve(live=Live(self.settings.dimension, preserve_nothing))
                raise
            self.serve(settings=settings, live=live.compacted() if live.wasteful else live)
        else:
            changes.upserts.close()
            self._snapshot = Snapshot.load(self.store, None, writer=False)
        self._behind = False

    # Changing

    @contextlib.contextmanager
    def changing(self, if_version: int | None) -> Iterator[None]:
        """Hold the lock, be up to date, and refuse when the index is not the one the caller saw."""
        self.store.require_usable()
        with self.mutex:
            self._become_writer()
            if if_version is not None and if_version != self.store.version:
                raise VersionConflict(
                    f"expected the index at version {if_version}, found {self.store.version}; read it again and retry"
                )
            try:
                yield
            except BaseException:
                self.recover()
                raise
            if self.live.wasteful:
                self.serve(live=self.live.compacted())

    def recover(self) -> None:
        """Read the store anew when something was committed that what is live does not show."""
        if self.live.sequence != self.store.version:
            self._snapshot = Snapshot.load(self.store, self.encoder, writer=True)

    def applied(self) -> None:
        """What is live shows everything that was committed."""
        self.live.sequence = self.store.version

    def save(self, settings: Settings) -> None:
        """Settings that place no document otherwise."""
        with self.store.transaction() as tx:
            tx.set_setting(KEY, settings.to_json())
        self.serve(settings=settings)
        self.applied()

    def swap(self, new: Replacement, encoder: Encoder) -> None:
        """Everything placed anew, at once."""
        self._snapshot = new.put_in_place(self.store, encoder)
        if new.records:
            self._refresh_base()

    def adopt(self, encoder: Encoder, progress: Progress | None) -> None:
        """Keep another encoder, embed and place everything anew under it, and swap it in at once."""
        with clear_errors(self.store.path / models.MODELS):
            models.keeper(encoder)(self.store.path)
        settings = replace(
            self.settings,
            fingerprint=encoder.fingerprint,
            dimension=encoder.dimension,
            model=models.folder_name(encoder),
        )
        self.swap(replaced(reencoded(self.records(), encoder, progress), settings, progress), encoder)
        self._remove_old_models()

    def compact(self) -> None:
        """Leave no byte of what was deleted in any file, and a fresh base."""
        self.serve(live=self.live.compacted())
        self._write_base()
        self.store.compact()
        self._remove_old_models()

    def _remove_old_models(self) -> None:
        """A reader or a backup that began before a swap may still want the model of then: leave it to the next.

        So does a disk that is full or failing: the swap is done.
        """
        path, keep = self.store.path, self.settings.model
        with contextlib.suppress(DiskFull, DiskFailed):
            if models.others(path, keep) and self.store.settled():
                models.remove_others(path, keep)

    def _become_writer(self) -> None:
        if self._writing:
            return
        self.current()  # refuses a closed index
        writer = Store.open(self.store.path, writer=True)
        try:
            snapshot = Snapshot.load(writer, self.encoder, writer=True)  # searches go on by what was read before
            self.held_out = writer.held_out()
        except BaseException:
            writer.close()
            raise
        with self._following:
            self._reader, self.store, self._snapshot, self._writing = self.store, writer, snapshot, True
        self._remove_old_models()

    # The base

    def _base_sequence(self) -> int:
        base = self.store.base()
        return base.sequence if base is not None else 0

    def _refresh_base(self) -> None:
        """Write a base if the disk lets us: what was acknowledged does not depend on one."""
        try:
            self._write_base()
        except (DiskFull, DiskFailed):
            logger.warning("the disk is full or failing: no base was written, so opening this index will take longer")

    def _write_base(self) -> None:
        self.store.write_base(self.live.to_arrays(), self.live.sequence)
