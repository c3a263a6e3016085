"""LocalEngine: a store, what is live of it, and who may change it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Self

from incdsi.documents import Document
from incdsi.engine.local import models
from incdsi.engine.local.batch import LocalBatch
from incdsi.engine.local.handles import Writing, handles_of
from incdsi.engine.local.live import Live
from incdsi.engine.local.view import LocalView
from incdsi.engine.protocol import Bench, Floats, Rows
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import DamagedBase, DiskFailed, DiskFull, UnknownDocument, VersionConflict
from incdsi.filters import Filter
from incdsi.progress import Progress, Stopwatch
from incdsi.records import JSON, Answer, Passaged, Record
from incdsi.store import Store
from incdsi.store.connections import clear_errors
from incdsi.text.encoders import Encoder

logger = logging.getLogger("incdsi")
BASE_EVERY = 4096  # changes after which closing writes a new base


class LocalEngine:
    """Documents in a folder: it follows what other processes write, and writes itself from its first change on.

    Handles of one folder in one process write through the first of them, one at a time.
    Searches take a `view` and never wait for a change. Changes are made one at a time, inside `changing`; whatever
    interrupts one, the next view shows what was committed.
    """

    def __init__(self, store: Store) -> None:
        self._reader = store  # read from before writing; a search may go on to use it
        self._handles = handles_of(store.path)
        self._writing: Writing | None = None
        self.mutex = self._handles.mutex
        self._following = threading.Lock()  # held by whoever replaces what is live: never for long
        self._behind = False
        self._live = Live.load(store, writer=False)
        self._tell_of_stemmer()

    @classmethod
    def create(cls, path: Path | str, settings: Settings, encoder: Encoder | None, beside: Mapping[str, JSON]) -> None:
        """An empty index in a new folder, with the encoder in it if there is one that can be kept."""
        stored = {KEY: settings.stemmed_now.to_json(), **beside}
        Store.create(path, stored, prepare=None if encoder is None else models.keeper(encoder)).close()

    @classmethod
    def open(cls, path: Path | str) -> Self:
        store = Store.open(path, writer=False)
        try:
            return cls(store)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base. In a forked child nothing happens."""
        if self.store.foreign:
            return
        with self.mutex:
            try:
                self._stop_writing()
            finally:
                self._reader.close()
                self._live = Live(self._live.settings, writer=False)  # lets go of the mapped base

    # Reading

    @property
    def store(self) -> Store:
        writing = self._writing
        return self._reader if writing is None else writing.store

    @property
    def live(self) -> Live:
        own, writing = self._live, self._writing  # in this order: it writes before its own is emptied
        return own if writing is None else writing.live

    @live.setter
    def live(self, live: Live) -> None:
        if self._writing is None:
            self._live = live
        else:
            self._writing.live = live

    def __str__(self) -> str:
        return str(self.path)

    @property
    def path(self) -> Path:
        return self.store.path

    @property
    def version(self) -> int:
        return self.store.version

    def view(self) -> LocalView:
        """Everything that was committed by now, by whatever process."""
        self.store.require_usable()
        if self._writing is None:
            with self._following:
                if self._writing is None:
                    self._follow()
        elif self.live.damaged:
            with self.mutex:
                self.recover()
        live = self.live
        return LocalView(live, live.settings, self.matching)

    def __contains__(self, id: object) -> bool:
        return id in self.store

    def get(self, id: str) -> Record:
        return self.store.get(id)

    def row_of(self, id: str) -> int:
        return self.store.row_of(id)

    def ids(self, rows: Iterable[int]) -> list[str]:
        return self.store.ids(rows)

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]:
        return self.store.titles(ids, longest)

    def documents(self, rows: Iterable[int], most_bytes: int | None = None) -> list[Document]:
        return self.store.documents(rows, most_bytes)

    def passaged(self, rows: Sequence[int], most_bytes: int | None = None) -> list[Passaged]:
        return self.store.passaged(rows, most_bytes)

    def records(self) -> Iterator[Record]:
        return self.store.records()

    def vectors(self) -> tuple[list[str], Floats]:
        """All ids and their document vectors, (n, h), as of now."""
        while True:
            self.view()
            with contextlib.suppress(UnknownDocument, DamagedBase):  # one was deleted meanwhile; the next view is sound
                rows, vectors = self.live.all_vectors()
                return self.ids(rows.tolist()), vectors

    def answer(self, key: str) -> Answer | None:
        return self.store.answer(key)

    def verify(self) -> list[str]:
        return self.store.verify()

    def backup(self, target: Path | str, progress: Progress | None) -> None:
        self.store.backup(target, progress=progress)

    def matching(self, where: Filter) -> Rows:
        return self.store.filter_rows(where)

    @property
    def vector_search(self) -> str:
        return "exact"

    def constrained_by(self, row: int) -> Sequence[int]:
        return self.store.constrained_by(row)

    def unresolved(self) -> Sequence[int]:
        return self.store.unresolved()

    def held_out(self) -> int:
        return self.store.held_out()

    def asked(self) -> int:
        return self.view().count_asked()

    def setting(self, key: str) -> JSON:
        return self.store.setting(key)

    def encoder(self, settings: Settings, given: Encoder | str | Path | None = None) -> Encoder:
        """The one those settings mean: the caller's if it is that one, else the one in the folder."""
        return models.open_model(self.path, settings.model, settings.fingerprint, given)

    # Changing

    @contextlib.contextmanager
    def changing(self, if_version: int | None) -> Iterator[None]:
        """Hold the lock, be up to date, and refuse when the index is not the one the caller saw."""
        self.store.require_usable()
        with self.mutex:
            self._become_writer()
            if if_version is not None and if_version != self.version:
                raise VersionConflict(
                    f"expected the index at version {if_version}, found {self.version}; read it again and retry"
                )
            try:
                yield
            except BaseException:
                self.recover()
                raise
            if self.live.wasteful:
                self.live = self.live.bench()

    def recover(self) -> None:
        """Read the store anew when something was committed that what is live does not show, or that shows damage."""
        if self.live.damaged or self.live.sequence != self.version:
            self.live = self._loaded()

    @property
    def next_row(self) -> int:
        return self.store.next_row

    @contextlib.contextmanager
    def write(self, watch: Stopwatch | None = None) -> Iterator[LocalBatch]:
        """One transaction: on the disk, then in what is live, when the block ends."""
        watch = watch or Stopwatch()
        with watch.step("commit"), self.store.transaction() as tx:
            batch = LocalBatch(tx)
            if self.live.settings != self.live.settings.stemmed_now:
                batch.save(self.live.settings)
            yield batch
        with watch.step("append"):
            try:
                self._show(batch)
            except DamagedBase:  # it is on the disk, from where all is read now
                self.recover()

    def amend_answer(self, key: str, answer: Answer) -> None:
        with self.mutex:
            self.store.amend_answer(key, answer)

    def bench(self, settings: Settings) -> Live:
        return Live(settings)

    def whole(self) -> Live:
        return self.view().bench()

    def swap(self, bench: Bench, records: Iterable[Record], settings: Settings, beside: Mapping[str, JSON]) -> None:
        """Store it all in one transaction; `bench`, one of this engine's, is what is live from then on."""
        if not isinstance(bench, Live):
            raise TypeError(f"a folder shows only benches of its own, not a {type(bench).__name__}")
        changed = False
        with self.store.transaction() as tx:
            for record in records:
                tx.replace(record.document.id, record)
                changed = True
            settings = settings.stemmed_now
            tx.set_setting(KEY, settings.to_json())
            for key, value in beside.items():
                tx.set_setting(key, value)
        bench.settings, bench.sequence = settings, self.version
        self.live = bench
        if changed:
            self._refresh_base()

    def keep_encoder(self, encoder: Encoder) -> str | None:
        """Put an encoder into the folder, beside the one in use; what settings call it."""
        with clear_errors(self.path / models.MODELS):
            models.keeper(encoder)(self.path)
        return models.folder_name(encoder)

    def compact(self) -> None:
        """Leave no byte of what was deleted in any file, and a fresh base."""
        self._write_base()
        self.live = Live.load(self.store, writer=True)  # by the new base: nothing is copied, and the old one goes
        self.store.compact()
        self.drop_old_encoders()

    def drop_old_encoders(self) -> None:
        """A reader or a backup that began before a swap may still want the model of then: leave it to the next.

        So does a disk that is full or failing: the swap is done.
        """
        keep = self.live.settings.model
        with contextlib.suppress(DiskFull, DiskFailed):
            if models.others(self.path, keep) and self.store.settled():
                models.remove_others(self.path, keep)

    # Inside

    def _tell_of_stemmer(self) -> None:
        before, now = self.live.settings.stemmer, self.live.settings.stemmed_now.stemmer
        if before != now:
            logger.warning(
                "%s: words were stemmed by %s and are now by %s, so some may be found differently; "
                "the next change records it",
                self.path,
                before or "an older incdsi",
                now or "nothing",
            )

    def _show(self, batch: LocalBatch) -> None:
        self.live.remove(batch.removed)
        self.live.put(batch.records)
        if batch.settings is not None:
            self.live.settings = batch.settings
        self.live.sequence = self.version

    def _loaded(self) -> Live:
        """What the store has, without the help of a base that is damaged."""
        damaged = self.live.damaged
        if damaged:
            logger.warning(
                "%s: the base is damaged, so everything is read from the store, which takes longer; "
                "`incdsi compact` rebuilds it",
                self,
            )
        return Live.load(self.store, writer=self._writing is not None, sound=not damaged)

    def _follow(self) -> None:
        if self.live.damaged:
            self.live = self._loaded()
        self._behind |= self.store.poll()
        if not self._behind:
            return
        changes = self.store.changes(self.live.sequence)
        if Settings.from_json(changes.settings).fingerprint == self.live.settings.fingerprint:
            try:
                live = self.live.caught_up(changes)
            except BaseException:  # half caught up: begin again, from nothing, with the next search
                self.live = Live(self.live.settings, writer=False)
                raise
            self.live = live.bench() if live.wasteful else live
        else:
            changes.upserts.close()
            self.live = Live.load(self.store, writer=False)
        self._behind = False

    def _become_writer(self) -> None:
        if self._writing is not None:
            return
        self.view()  # refuses a closed index
        writing = self._handles.writing() or self._opened_for_writing()
        writing.users.add(self)
        with self._following:
            self._writing = writing
            self._live = Live(writing.live.settings, writer=False)
        self.drop_old_encoders()

    def _opened_for_writing(self) -> Writing:
        store = Store.open(self.path, writer=True)
        try:
            writing = Writing(store, Live.load(store, writer=True))  # searches go on by what was read before
        except BaseException:
            store.close()
            raise
        self._handles.write_through(writing)
        return writing

    def _stop_writing(self) -> None:
        """The last one that writes here closes what they wrote through."""
        writing = self._writing
        if writing is None:
            return
        try:
            writing.users.discard(self)
            if not writing.users and (
                self.live.outdated_base or self.live.sequence - self._base_sequence() >= BASE_EVERY
            ):
                self._refresh_base()
        finally:
            self._writing = None
            if not writing.users:
                writing.store.close()

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
        try:
            self.store.write_base(self.live.to_arrays(), self.live.sequence)
        except DamagedBase:
            self.recover()
            self.store.write_base(self.live.to_arrays(), self.live.sequence)
        self.live.outdated_base = False
