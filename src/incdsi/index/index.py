"""Index: add, edit, delete, teach, search; what it acknowledges is on the disk."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Addition, Document, Hit
from incdsi.errors import DiskFailed, DiskFull, InvalidInput, UnknownDocument, VersionConflict
from incdsi.filters import Where, matches_everything, parse
from incdsi.hyperparameters import PAPER, SAFE, Hyperparameters
from incdsi.index import models, tuning
from incdsi.index.draft import Drafter, asked_of, reencoded, require_new, require_sound, taught_among
from incdsi.index.info import Info
from incdsi.index.live import Live, preserve_nothing
from incdsi.index.placement import BATCH, portions
from incdsi.index.replacement import Replacement, replaced
from incdsi.index.settings import DEFAULT_GENERATOR, GENERATOR, KEY, Method, Settings, generator_of, stored_settings
from incdsi.index.snapshot import Snapshot, opened_encoder
from incdsi.index.stage_one import Training, check_training, stage_one, taken_over
from incdsi.index.tuning import Tuning, last_tuning
from incdsi.index.writer import Receipt, Writer
from incdsi.progress import Progress, Stopwatch
from incdsi.search import check_mode
from incdsi.store import Record, Store
from incdsi.store.answers import Answer
from incdsi.store.connections import clear_errors
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator, described

if TYPE_CHECKING:
    from incdsi.client import RemoteIndex

logger = logging.getLogger("incdsi")
ENOUGH = 200  # held-out queries before the first tuning; four times as many before the next
BASE_EVERY = 4096  # changes after which closing writes a new base


class Index:
    """A search index that learns, in a folder; made by `create`, `build` and `open`.

    Any number of threads may search while one writes, and any number of processes may search while one
    writes; they see a new document within a search. The first change takes the folder's lock.

    >>> with Index.open("shop") as index:                               # doctest: +SKIP
    ...     index.add(Document(id="boots-18", text="Waterproof boots."), queries=["dry feet"])
    ...     index.search("boots for a river")[0].document_id
    """

    def __init__(self, store: Store, encoder: Encoder, generator: Generator | None = None) -> None:
        self._store = store
        self._reader: Store | None = None  # what was read from before writing; a search may still be using it
        self._given = generator
        self._generator: Generator | None = None  # once a change needed it
        self._writing = False
        self._held_out = 0  # queries; counted by a writer, to know when to tune
        self._receipt: Receipt | None = None  # to be stored with the next change
        self._not_before = 0  # so many of them, after a tuning for which there was no room
        self._mutex = threading.RLock()  # held by whoever changes the index
        self._following = threading.Lock()  # held by whoever replaces what is served: never for long
        self._behind = False
        self._snapshot = Snapshot.load(store, encoder, writer=False)

    # Making and opening

    @classmethod
    def create(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        method: Method = "general",
        hyperparameters: Hyperparameters | None = None,
        tuning: bool = True,
    ) -> Self:
        """An empty index in a new folder; no encoder named means all-MiniLM-L6-v2."""
        chosen = models.as_encoder(encoder)
        settings = Settings(
            fingerprint=chosen.fingerprint,
            dimension=chosen.dimension,
            model=models.folder_name(chosen),
            method=method,
            hyperparameters=hyperparameters or (SAFE if method == "general" else PAPER),
            tuning=tuning and method == "general",
        )
        stored = {KEY: settings.to_json(), GENERATOR: described(generator or DEFAULT_GENERATOR)}
        Store.create(path, stored, prepare=models.keeper(chosen)).close()
        return cls.open(path, chosen, generator=generator)

    @classmethod
    def build(
        cls,
        documents: Iterable[Document],
        *,
        queries: Mapping[str, Sequence[str]] | None = None,
        path: Path | str,
        train: Training = "none",
        encoder: Encoder | str | Path | None = None,
        generator: Generator | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A new index with these documents; `train` puts stage 1 before it.

        "none" solves for the documents one after another, "frozen" trains their vectors together, "finetune"
        adapts the encoder (which must be a torch one) and then solves under it.
        """
        check_training(train)
        batch, asked = list(documents), dict(queries or {})
        require_new(batch, asked, ())
        chosen = models.as_encoder(encoder)
        model = None
        if train != "none":
            asking = generator or DEFAULT_GENERATOR
            model = stage_one(batch, asked, encoder=chosen, generator=asking, mode=train, progress=progress)
            chosen = model.encoder
        index = cls.create(path, chosen, generator=generator)
        try:
            if train == "frozen":
                with index._changing(None):
                    writer = index._writer()
                    writer.take_over(taken_over(batch, asked, model))
                    index._held_out += writer.held_out
                index.attach({id: taught for id, texts in asked.items() if (taught := taught_among(texts))})
            else:
                index.add_many(batch, asked, progress=progress)
        except BaseException:
            index.close()  # the caller never gets it to close
            raise
        return index

    @classmethod
    def open(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        key: str | None = None,
    ) -> Self:
        """The index in a folder, for searching and, while no other process does, for writing.

        Queries go on to be written by the generator the index was made with; one of your own must be given again before
        documents are added. Another that is given is kept with the first change it makes.
        An http(s) address gives a RemoteIndex, whose verbs are the same; `key` is the server's, or that in INCDSI_KEY.
        """
        if str(path).startswith(("http://", "https://")):
            return cast(Self, _remote(str(path), key, encoder, generator))
        store = Store.open(path, writer=False)
        try:
            return cls(store, opened_encoder(store, encoder), generator)
        except BaseException:
            store.close()
            raise

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base for quick opening.

        In a forked child nothing happens: they are the parent's.
        """
        if self._store.foreign:
            return
        with self._mutex:
            writing, self._writing = self._writing, False
            try:
                if writing and self._live.sequence - self._base_sequence() >= BASE_EVERY:
                    self._refresh_base()
            finally:
                if self._reader is not None:
                    self._reader.close()
                self._store.close()
                self._serve(live=Live(self._settings.dimension, preserve_nothing))  # lets go of the mapped base

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def __len__(self) -> int:
        return len(self._current().live)

    def __contains__(self, id: object) -> bool:
        return id in self._store

    @property
    def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return self._store.version

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return self._store.get(id).document

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return asked_of(self._store.get(id))

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]:
        """The titles of those documents that are there, at most so many characters of each, without reading more."""
        return self._store.titles(ids, longest)

    def documents(self) -> Iterator[Document]:
        """All documents, as of now, in the order of their last change."""
        for document, _ in self.with_queries():
            yield document

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """The same, each with what people asked for it then."""
        for record in self._store.changes(0).upserts:
            yield record.document, asked_of(record)

    def search(
        self,
        text: str,
        k: int = 10,
        where: Where | None = None,
        mode: str = "fused",
        *,
        watch: Stopwatch | None = None,
        most_bytes: int | None = None,
    ) -> list[Hit]:
        """The k best documents for a text; `where` filters on metadata before they are chosen.

        By words alone (mode "lexical", or a lexical weight of 1) only documents that share a word with it are found.

        `watch` is told the seconds of each step. TooLarge when the documents found have more than `most_bytes`.
        """
        if not isinstance(text, str) or not text.strip():
            raise InvalidInput(f"expected a query of at least one character, found {text!r}")
        readable = text.encode("utf-8", "replace").decode()  # half a surrogate pair is no reason to find nothing
        steps = watch or Stopwatch()
        return self._current().search(self._store, readable, k, where, check_mode(mode), steps, most_bytes)

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """All ids and their document vectors, (n, h), as of now."""
        live = self._current().live
        while True:
            slots = np.flatnonzero(live.rows.alive)
            try:
                return self._store.ids(live.store_rows(slots).tolist()), live.rows.vectors(slots)
            except UnknownDocument:  # one was deleted meanwhile
                live = self._current().live

    def info(self) -> Info:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        records = list(self._store.changes(0).upserts)
        return Info.of(records, self._current().settings, self.last_tuning, self.version)

    @property
    def last_tuning(self) -> Tuning | None:
        """What the index chose when it last tuned itself, and what that changed; None before the first time."""
        return last_tuning(self._store)

    def answer(self, key: str) -> Answer | None:
        """What was stored under that key with a change, for a day or until the index is compacted."""
        return self._store.answer(key)

    def verify(self) -> list[str]:
        """Read every byte; what is wrong with it, one sentence each, or nothing."""
        return self._store.verify()

    def backup(self, target: Path | str, progress: Progress | None = None) -> None:
        """Copy the index as it is at one moment to a new folder, while reading and writing go on."""
        self._store.backup(target, progress=progress)

    # Writing

    def add(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Add a document and what people asked for it; DuplicateDocument when its id is there."""
        return self.add_many([document], {document.id: queries}, if_version=if_version)[0]

    def add_many(
        self,
        documents: Iterable[Document],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Add documents in order; nothing is written if one of them has an id or a query that cannot be added.

        They are committed in portions: when the disk is full or the call is interrupted, what it reported through
        `progress` is there and may be more than nothing. With `whole` all are committed at once or none is; they are
        held in memory until then. When enough queries are held out by then, the index tunes itself: `progress` goes
        on with another total, and `last_tuning` says what it chose.
        """
        batch, asked = list(documents), dict(queries or {})
        additions: list[Addition] = []

        def is_taught(document: Document) -> bool:
            return bool(taught_among(asked.get(document.id, ())))

        with self._changing(if_version):
            require_new(batch, asked, (document.id for document in batch if document.id in self._store))
            for portion in [batch] if whole and batch else portions(batch, self._settings, is_taught, BATCH):
                writer = self._writer()
                additions += writer.add(portion, asked)
                self._held_out += writer.held_out
                if progress is not None:
                    progress(len(additions), len(batch))
            self._tune_if_due(progress)
        return additions

    def update(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Replace a document's text, title and metadata; what people asked for it is kept, `queries` come on top."""
        require_sound([document], {document.id: queries})
        with self._changing(if_version):
            return self._writer().update(document, queries)

    def upsert(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Update the document if it is there, add it if not."""
        with self._changing(if_version):
            change = self.update if document.id in self._store else self.add
            return change(document, queries)

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document; no other document's vector changes."""
        if not isinstance(query, str) or not query.strip():
            raise InvalidInput(f"expected a query of at least one character, found {query!r}")
        require_sound([], {id: [query]})
        with self._changing(if_version):
            return self._writer().teach(" ".join(query.split()), id)

    def attach(
        self,
        queries: Mapping[str, Sequence[str]],
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
    ) -> list[Addition]:
        """Give documents that are there more of what people asked for them, by id; text and old queries stay.

        Unknown ids are refused before anything is written; portions, `progress` and tuning are those of
        `add_many`. Answers for the documents that learned something new.
        """
        asked = dict(queries)
        require_sound([], asked)
        additions: list[Addition] = []
        with self._changing(if_version):
            ids = [id for id in asked if self._store.row_of(id)]  # refuses one that is not there
            writer, beside = self._writer(), self._live.compacted() if len(ids) > 1 else self._live
            for start in range(0, len(ids), BATCH):
                additions += writer.attach(ids[start : start + BATCH], asked, beside)
                if progress is not None:
                    progress(min(start + BATCH, len(ids)), len(ids))
            self._held_out = self._store.held_out()
            self._tune_if_due(progress)
        return additions

    def delete(
        self,
        id: str | Iterable[str] | None = None,
        *,
        where: Where | None = None,
        resolve: bool = False,
        if_version: int | None = None,
        progress: Progress | None = None,
    ) -> int:
        """Remove a document, several at once, or all that pass a filter; how many.

        Text, queries and preserve rows go with them, all or, when an id is unknown, none; a filter without a
        condition, such as {}, is refused. `resolve` then places anew those that were solved with them present,
        so that nothing of them stays, and reports to `progress`; when it is stopped there, `resolve` goes on.
        """
        if (id is None) == (where is None):
            raise InvalidInput("expected either an id or a filter to delete by, found both or neither")
        with self._changing(if_version):
            ids = self._matching(where) if where is not None else _listed(id)
            writer = self._writer()
            try:
                rows = writer.delete(ids)
                if resolve:
                    shaped = {row for gone in rows for row in self._store.constrained_by(gone)}
                    writer.place_anew(sorted(shaped), progress)
            except KeyboardInterrupt as stop:
                deleted = 0 if any(one in self._store for one in ids) else len(ids)
                raise KeyboardInterrupt(f"stopped; {deleted:,} deleted, {self._waiting()}") from stop
            return len(ids)

    @property
    def unresolved(self) -> int:
        """How many documents were placed beside one that was deleted since."""
        return len(self._store.unresolved())

    def resolve(self, progress: Progress | None = None) -> int:
        """Place them anew, so that nothing of what was deleted stays; how many. Each is kept as it is placed."""
        with self._changing(None):
            rows = self._store.unresolved()
            try:
                self._writer().place_anew(rows, progress)
            except KeyboardInterrupt as stop:
                raise KeyboardInterrupt(f"stopped; {self._waiting()}") from stop
            return len(rows)

    def _waiting(self) -> str:
        left = self.unresolved
        return f"{left:,} left to place anew" + (": `resolve` goes on" if left else "")

    def _matching(self, where: Where) -> list[str]:
        """The ids to delete by a filter; refuses one without a condition."""
        tree = parse(where)
        if matches_everything(tree):
            raise InvalidInput("this filter matches every document, so nothing was deleted; narrow it, or delete by id")
        return self._store.ids(self._store.filter_rows(tree).tolist())

    def tune(self, progress: Progress | None = None) -> Tuning:
        """Choose weights and fusion by the held-out queries and place all documents by them; what it gained."""
        with self._changing(None):
            return self._tune(progress)

    def set_tuning(self, on: bool) -> None:
        """Whether the index holds queries out and tunes itself, from now on; a paper index never does."""
        with self._changing(None):
            if on and self._settings.method == "paper":
                raise InvalidInput("expected an index of the general form to tune itself, found one of the paper's")
            if on != self._settings.tuning:
                self._save(replace(self._settings, tuning=on))

    def adopt(self, encoder: Encoder, progress: Progress | None = None) -> None:
        """Embed and place everything anew under another encoder, then swap it in at once; searches go on.

        The old one's files go when nobody reads by it any more: now, or when the index is next changed.
        """
        with self._changing(None):
            with clear_errors(self._store.path / models.MODELS):
                models.keeper(encoder)(self._store.path)
            settings = replace(
                self._settings,
                fingerprint=encoder.fingerprint,
                dimension=encoder.dimension,
                model=models.folder_name(encoder),
            )
            self._swap(replaced(reencoded(self._by_row(), encoder, progress), settings, progress), encoder)
            self._remove_old_models()

    def compact(self) -> None:
        """Leave no byte of what was deleted in any file, and a fresh base for quick opening."""
        with self._changing(None):
            self._serve(live=self._live.compacted())
            self._write_base()
            self._store.compact()
            self._remove_old_models()

    @contextlib.contextmanager
    def keeping(self, receipt: Receipt) -> Iterator[None]:
        """Store a receipt in one transaction with the change that is made inside; `answer` finds it by its key.

        For those who are asked again when their answer was lost, and must neither do it twice nor refuse it.
        """
        with self._mutex:
            self._receipt = receipt
            try:
                yield
            finally:
                self._receipt = None

    def amend_answer(self, key: str, answer: Answer) -> None:
        """Say it better, now that everything is done."""
        with self._mutex:
            self._store.amend_answer(key, answer)

    # Inside: reading

    @property
    def _settings(self) -> Settings:
        return self._snapshot.settings

    @property
    def _encoder(self) -> Encoder:
        return self._snapshot.encoder

    @property
    def _live(self) -> Live:
        return self._snapshot.live

    def _serve(self, **changed: Any) -> None:
        self._snapshot = replace(self._snapshot, **changed)

    def _current(self) -> Snapshot:
        """What there is to search, with everything other processes have written by now."""
        self._store.require_usable()
        if not self._writing:
            with self._following:
                if not self._writing:
                    self._follow()
        return self._snapshot

    def _follow(self) -> None:
        self._behind |= self._store.poll()
        if not self._behind:
            return
        # Changes first: settings read after them that name the same encoder prove that they are by it too.
        changes = self._store.changes(self._live.sequence)
        settings = stored_settings(self._store)
        if settings.fingerprint == self._settings.fingerprint:
            try:
                live = self._live.caught_up(changes)
            except BaseException:  # half caught up: begin again, from nothing, with the next search
                self._serve(live=Live(self._settings.dimension, preserve_nothing))
                raise
            self._serve(settings=settings, live=live.compacted() if live.wasteful else live)
        else:
            changes.upserts.close()
            self._snapshot = Snapshot.load(self._store, None, writer=False)
        self._behind = False

    # Inside: writing

    @contextlib.contextmanager
    def _changing(self, if_version: int | None) -> Iterator[None]:
        """Hold the lock, be up to date, and refuse when the index is not the one the caller saw."""
        self._store.require_usable()
        with self._mutex:
            self._become_writer()
            if if_version is not None and if_version != self.version:
                raise VersionConflict(
                    f"expected the index at version {if_version}, found {self.version}; read it again and retry"
                )
            try:
                yield
            except BaseException:
                self._recover()
                raise
            if self._live.wasteful:
                self._serve(live=self._live.compacted())

    def _become_writer(self) -> None:
        if self._writing:
            return
        self._current()  # refuses a closed index
        writer = Store.open(self._store.path, writer=True)
        try:
            snapshot = Snapshot.load(writer, self._encoder, writer=True)  # searches go on by what was read before
            self._held_out = writer.held_out()
        except BaseException:
            writer.close()
            raise
        with self._following:
            self._reader, self._store, self._snapshot, self._writing = self._store, writer, snapshot, True
        self._remove_old_models()

    def _recover(self) -> None:
        """Read the store anew when something was committed that what is live does not show."""
        if self._live.sequence != self._store.version:
            self._snapshot = Snapshot.load(self._store, self._encoder, writer=True)

    def _writer(self) -> Writer:
        drafter = Drafter(
            encoder=self._encoder,
            generator=self._written_by,
            hold_out=self._settings.tuning,
            owners=self._live.queries,
        )
        return Writer(
            store=self._store, live=self._live, settings=self._settings, drafter=drafter, receipt=self._receipt
        )

    def _written_by(self) -> Generator:
        """What writes queries for new texts; refuses when it cannot be had."""
        if self._generator is None:
            self._generator = generator_of(self._store, self._given)
            self._applied()
        return self._generator

    def _applied(self) -> None:
        self._live.sequence = self._store.version

    # Inside: tuning and swapping

    def _by_row(self) -> list[Record]:
        return sorted(self._store.changes(0).upserts, key=lambda record: record.row)

    def _tune_if_due(self, progress: Progress | None) -> None:
        enough = max(ENOUGH, 4 * self._settings.tuned_at, self._not_before)
        if self._settings.tuning and self._held_out >= enough:
            self._held_out = self._store.held_out()  # some may have gone with their documents
            if self._held_out >= enough:
                self._tune_or_go_on(progress)

    def _tune_or_go_on(self, progress: Progress | None) -> None:
        """What was added is on the disk already: whatever stops the tuning must not look like a refusal."""
        try:
            self._tune(progress)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt("stopped while the index tuned itself; everything before it is kept") from stop
        except Exception as error:
            self._not_before = 2 * self._held_out
            self._recover()
            no_room = isinstance(error, OSError | MemoryError)
            logger.warning("the index could not finish tuning itself and goes on: %s", error, exc_info=not no_room)

    def _tune(self, progress: Progress | None) -> Tuning:
        new, outcome = tuning.retuned(self._snapshot, self._by_row(), self._held_out, self.version, progress)
        self._swap(new, self._encoder)
        return outcome

    def _swap(self, new: Replacement, encoder: Encoder) -> None:
        self._snapshot = new.put_in_place(self._store, encoder)
        if new.records:
            self._refresh_base()

    def _save(self, settings: Settings) -> None:
        with self._store.transaction() as tx:
            tx.set_setting(KEY, settings.to_json())
        self._serve(settings=settings)
        self._applied()

    def _remove_old_models(self) -> None:
        """A reader or a backup that began before a swap may still want the model of then: leave it to the next.

        So does a disk that is full or failing: the swap is done.
        """
        path, keep = self._store.path, self._settings.model
        with contextlib.suppress(DiskFull, DiskFailed):
            if models.others(path, keep) and self._store.settled():
                models.remove_others(path, keep)

    def _base_sequence(self) -> int:
        base = self._store.base()
        return base.sequence if base is not None else 0

    def _refresh_base(self) -> None:
        """Write a base if the disk lets us: what was acknowledged does not depend on one."""
        try:
            self._write_base()
        except (DiskFull, DiskFailed):
            logger.warning("the disk is full or failing: no base was written, so opening this index will take longer")

    def _write_base(self) -> None:
        self._store.write_base(self._live.to_arrays(), self._live.sequence)


def _remote(url: str, key: str | None, *here: object) -> RemoteIndex[Info]:
    from incdsi.client import RemoteIndex

    if any(one is not None for one in here):
        raise InvalidInput("expected a server to use its own encoder and generator, found one given; leave it out")
    return RemoteIndex(url, key=key, read_info=Info.from_json)


def _listed(id: str | Iterable[str] | None) -> list[str]:
    return [id] if isinstance(id, str) else list(dict.fromkeys(id or ()))
