"""Index: add, edit, delete, teach, search; what it acknowledges is on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import Addition, Document, Hit
from incdsi.engine.local import LocalEngine, models
from incdsi.engine.settings import Method, Settings
from incdsi.errors import InvalidInput
from incdsi.filters import Where
from incdsi.hyperparameters import PAPER, SAFE, Hyperparameters
from incdsi.index.draft import asked_of, require_new, require_query, require_sound, taught_among
from incdsi.index.generator import DEFAULT_GENERATOR, GENERATOR
from incdsi.index.info import info_of
from incdsi.index.receipts import Receipts
from incdsi.index.session import Session
from incdsi.index.stage_one import Training, check_training, stage_one, taken_over
from incdsi.index.tuning import Tuner, last_tuning
from incdsi.index.writer import Writer
from incdsi.info import Info, Tuning
from incdsi.progress import Progress, Stopwatch
from incdsi.search_index import SearchIndex
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator, described


class Index:
    """A search index that learns, in a folder; made by `create`, `build` and `open`.

    Any number of threads may search while one writes, and any number of processes may search while one
    writes; they see a new document within a search. The first change takes the folder's lock.

    >>> with Index.open("shop") as index:                               # doctest: +SKIP
    ...     index.add(Document(id="boots-18", text="Waterproof boots."), queries=["dry feet"])
    ...     index.search("boots for a river")[0].document_id
    """

    def __init__(
        self, engine: LocalEngine, encoder: Encoder | str | Path | None = None, generator: Generator | None = None
    ) -> None:
        self._engine = engine
        self._session = Session(engine, encoder)
        self._writer = Writer(self._session, generator)
        self._tuner = Tuner(self._session)

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
        LocalEngine.create(path, settings, chosen, {GENERATOR: described(generator or DEFAULT_GENERATOR)})
        return cls.open(Path(path), chosen, generator=generator)

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
        chosen, model = models.as_encoder(encoder, trainable=train == "finetune"), None
        if train != "none":
            asking = generator or DEFAULT_GENERATOR
            model = stage_one(batch, asked, encoder=chosen, generator=asking, mode=train, progress=progress)
            chosen = model.encoder
        index = cls.create(path, chosen, generator=generator)
        try:
            if model is not None and train == "frozen":
                with index._engine.changing(None):
                    index._writer.take_over(taken_over(batch, asked, model))
                index.attach({id: taught for id, texts in asked.items() if (taught := taught_among(texts))})
            else:
                index.add_many(batch, asked, progress=progress)
        except BaseException:
            index.close()  # the caller never gets it to close
            raise
        return index

    @overload
    @classmethod
    def open(
        cls, path: Path, encoder: Encoder | str | Path | None = None, *, generator: Generator | None = None
    ) -> Self: ...

    @overload
    @classmethod
    def open(
        cls,
        path: str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        key: str | None = None,
    ) -> SearchIndex: ...

    @classmethod
    def open(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        key: str | None = None,
    ) -> SearchIndex:
        """The index in a folder, for searching and, while no other process does, for writing.

        Queries go on to be written by the generator the index was made with; one of your own must be given again before
        documents are added. Another that is given is kept with the first change it makes.
        An http(s) address opens a RemoteIndex, with every verb of SearchIndex; `key` defaults to INCDSI_KEY.
        Type checkers see a SearchIndex for a str, which may be an address, and an Index for a Path.
        """
        if isinstance(path, str) and path.startswith(("http://", "https://")):
            return _remote(path, key, encoder, generator)
        engine = LocalEngine.open(path)
        try:
            return cls(engine, encoder, generator)
        except BaseException:
            engine.close()
            raise

    def close(self) -> None:
        """Let go of files and lock; a writer that changed much leaves a base for quick opening.

        In a forked child nothing happens: they are the parent's.
        """
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Reading

    def __len__(self) -> int:
        return len(self._engine.view())

    def __contains__(self, id: object) -> bool:
        return id in self._engine

    @property
    def version(self) -> int:
        """Counts every change; give it as `if_version` to refuse a lost update."""
        return self._engine.version

    def get(self, id: str) -> Document:
        """The document with that id; UnknownDocument when it is not there."""
        return self._engine.get(id).document

    def queries(self, id: str) -> list[str]:
        """What people asked for that document; those that were taught are `Taught`."""
        return asked_of(self._engine.get(id))

    def titles(self, ids: Sequence[str], longest: int) -> dict[str, str]:
        """The titles of those documents that are there, at most so many characters of each, without reading more."""
        return self._engine.titles(ids, longest)

    def documents(self) -> Iterator[Document]:
        """All documents, as of now, in the order they were added."""
        for document, _ in self.with_queries():
            yield document

    def with_queries(self) -> Iterator[tuple[Document, list[str]]]:
        """The same, each with what people asked for it then."""
        for record in self._engine.records():
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
        return self._session.current().search(text, k, where, mode, watch or Stopwatch(), most_bytes)

    def search_many(
        self, texts: Sequence[str], k: int = 10, where: Where | None = None, mode: str = "fused"
    ) -> list[list[Hit]]:
        """The k best documents for each text."""
        return [self.search(text, k, where, mode) for text in texts]

    def vectors(self) -> tuple[list[str], NDArray[np.float32]]:
        """All ids and their document vectors, (n, h), as of now."""
        return self._engine.vectors()

    def info(self) -> Info:
        """Counts, settings, and the quality on held-out queries of learned, lexical, fused and dense search."""
        return info_of(self._engine, self.last_tuning)

    @property
    def last_tuning(self) -> Tuning | None:
        """What the index chose when it last tuned itself, and what that changed; None before the first time."""
        return last_tuning(self._engine)

    @property
    def receipts(self) -> Receipts:
        """Answers stored with changes, for a server whose clients may ask twice."""
        return Receipts(self._session, self._writer)

    def verify(self) -> list[str]:
        """Read every byte; what is wrong with it, one sentence each, or nothing."""
        return self._engine.verify()

    def backup(self, target: Path | str, progress: Progress | None = None) -> None:
        """Copy the index as it is at one moment to a new folder, while reading and writing go on."""
        self._engine.backup(target, progress=progress)

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
        with self._engine.changing(if_version):
            require_new(batch, asked, (document.id for document in batch if document.id in self._engine))
            additions = self._writer.add(batch, asked, whole=whole, progress=progress)
            self._tuner.tune_if_due(progress)
        return additions

    def update(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Replace a document's text, title and metadata; what people asked for it is kept, `queries` come on top."""
        require_sound([document], {document.id: queries})
        with self._engine.changing(if_version):
            return self._writer.update(document, queries)

    def upsert(self, document: Document, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Update the document if it is there, add it if not."""
        with self._engine.changing(if_version):
            change = self.update if document.id in self._engine else self.add
            return change(document, queries)

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document; no other document's vector changes."""
        require_query(query)
        require_sound([], {id: [query]})
        with self._engine.changing(if_version):
            return self._writer.teach(" ".join(query.split()), id)

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
        with self._engine.changing(if_version):
            additions = self._writer.attach(asked, progress)
            self._tuner.tune_if_due(progress)
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
            raise InvalidInput("delete takes either an id or a filter")
        with self._engine.changing(if_version):
            ids = self._writer.matching(where) if where is not None else _listed(id)
            return self._writer.delete(ids, resolve=resolve, progress=progress)

    def resolve(self, progress: Progress | None = None) -> int:
        """Place again whatever was placed beside a document deleted since; how many. Each is kept as it is placed."""
        with self._engine.changing(None):
            return self._writer.resolve(progress)

    def tune(self, progress: Progress | None = None) -> Tuning:
        """Choose weights and fusion by the held-out queries and place all documents by them; what it gained."""
        with self._engine.changing(None):
            return self._tuner.tune(progress)

    def set_tuning(self, on: bool) -> None:
        """Whether the index holds queries out and tunes itself, from now on; a paper index never does."""
        with self._engine.changing(None):
            if on and self._session.settings.method == "paper":
                raise InvalidInput("expected an index of the general form to tune itself, found one of the paper's")
            if on != self._session.settings.tuning:
                self._session.save(replace(self._session.settings, tuning=on))

    def adopt(self, encoder: Encoder, progress: Progress | None = None) -> None:
        """Embed and place everything anew under another encoder, then swap it in at once; searches go on.

        The old one's files go when nobody reads by it any more: now, or when the index is next changed.
        """
        with self._engine.changing(None):
            self._session.adopt(encoder, progress)

    def compact(self) -> None:
        """Leave no byte of what was deleted in any file, and a fresh base for quick opening."""
        with self._engine.changing(None):
            self._engine.compact()


def _remote(url: str, key: str | None, *given: object) -> SearchIndex:
    from incdsi.client import RemoteIndex

    if any(one is not None for one in given):
        raise InvalidInput("a server uses its own encoder and generator; drop the argument")
    return RemoteIndex(url, key=key)


def _listed(id: str | Iterable[str] | None) -> list[str]:
    return [id] if isinstance(id, str) else list(dict.fromkeys(id or ()))
