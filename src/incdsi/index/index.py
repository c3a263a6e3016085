"""Index: add, edit, delete, teach, search; what it acknowledges is on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, overload

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned, Threshold
from incdsi.client import RemoteIndex
from incdsi.documents import Addition, DocumentLike, as_document, as_documents
from incdsi.engine.protocol import Engine
from incdsi.engine.settings import Method
from incdsi.errors import IndexNotFound, InvalidInput
from incdsi.filters import Where
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import require_new, require_query, require_sound, taught_among
from incdsi.index.lessons import lessons_of, queries_to_attach
from incdsi.index.making import create, is_address, open_engine, open_remote, require_language_of
from incdsi.index.rehearsal import rehearse
from incdsi.index.stage_one import Training, stage_one, taken_over
from incdsi.index.upkeep import Upkeep
from incdsi.progress import Progress
from incdsi.search_index import SearchIndex
from incdsi.text.encoders import Encoder, as_encoder
from incdsi.text.generators import Generator
from incdsi.text.passages import Splitter
from incdsi.text.queries import distinct


class Index(Upkeep):
    """A search index that learns, in a folder; made by `create`, `build` and `open`.

    Any number of threads may search while one writes, and any number of processes may search while one
    writes; they see a new document within a search. The first change takes the folder's lock; other handles of the
    same process write through the one that has it.

    >>> with Index.open("shop") as index:                               # doctest: +SKIP
    ...     index.add(Document(id="boots-18", text="Waterproof boots."), queries=["dry feet"])
    ...     index.search("boots for a river")[0].document_id
    """

    # Making and opening

    @classmethod
    def create(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
        method: Method = "general",
        hyperparameters: Hyperparameters | None = None,
        tuning: bool = True,
        language: str = "english",
        one_pass: bool = False,
    ) -> Self:
        """An empty index in a new folder; no encoder named means all-MiniLM-L6-v2.

        `language` stems its words: one of Snowball's, or "none". It is never guessed, and does not change.
        Texts that the encoder cannot read whole are kept in passages, by headings and sentences; another `splitter` is
        `Sections(tokens=...)`, a function from a text to pieces of it or to (start, end), or "none".

        In `one_pass`, sentences of a document are embedded with it: additions are quicker, and find a little less.
        """
        chosen = as_encoder(encoder)
        create(path, chosen, generator, splitter, method, hyperparameters, tuning, language, one_pass)
        return cls._around(open_engine(path), chosen, generator, splitter, None)

    @classmethod
    def build(
        cls,
        documents: Iterable[DocumentLike],
        *,
        queries: Mapping[str, Sequence[str]] | None = None,
        path: Path | str,
        train: Training = "none",
        encoder: Encoder | str | Path | None = None,
        generator: Generator | None = None,
        language: str = "english",
        splitter: Splitter | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """A new index with these documents; `train` puts stage 1 before it.

        "none" solves for the documents one after another, "frozen" trains their vectors together, "finetune"
        adapts the encoder (which must be a torch one) and then solves under it.
        """
        batch, asked = as_documents(documents), dict(queries or {})
        require_new(batch, asked, ())
        asked = {id: distinct(texts) for id, texts in asked.items()}
        model = stage_one(batch, asked, encoder=encoder, generator=generator, mode=train, progress=progress)
        chosen = encoder if model is None else model.encoder
        index = cls.create(path, chosen, generator=generator, splitter=splitter, language=language)
        try:
            if model is not None and train == "frozen":
                with index.engine.changing(None):
                    index._writer.take_over(taken_over(batch, asked, model, index._writer.split_by()))
                index.attach({id: taught for id, texts in asked.items() if (taught := taught_among(texts))})
                with index.engine.changing(None):
                    rehearse(index._session, progress)
            else:
                index.add_many(batch, asked, progress=progress)
        except BaseException:
            index.close()  # the caller never gets it to close
            raise
        return index

    @overload
    @classmethod
    def open(
        cls,
        path: Path,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
        create: bool = False,
        language: str | None = None,
    ) -> Self: ...

    @overload
    @classmethod
    def open(
        cls,
        path: str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
        key: str | None = None,
        create: bool = False,
        language: str | None = None,
    ) -> SearchIndex: ...

    @classmethod
    def open(
        cls,
        path: Path | str,
        encoder: Encoder | str | Path | None = None,
        *,
        generator: Generator | None = None,
        splitter: Splitter | None = None,
        key: str | None = None,
        create: bool = False,
        language: str | None = None,
    ) -> SearchIndex:
        """The index in a folder, for searching and, while no other process does, for writing; `create` it if missing.

        Queries go on to be written by the generator the index was made with, and texts to be split by its splitter; one
        of your own must be given again before documents are added. Another is kept with the first change it makes.
        A `language` that is not the index's own is refused.
        milvus://host:port/name is an index on a Milvus server (docs/deploy/milvus.md); the verbs are the same.
        An http(s) address opens a RemoteIndex, with every verb of SearchIndex; `key` defaults to INCDSI_KEY.
        Type checkers see a SearchIndex for a str, which may be an address, and an Index for a Path.
        """
        if is_address(path):
            return open_remote(RemoteIndex, path, key, encoder, generator, splitter, create or None, language)
        try:
            engine = open_engine(path)
        except IndexNotFound:
            if not create:
                raise
            return cls.create(path, encoder, generator=generator, splitter=splitter, language=language or "english")
        return cls._around(engine, encoder, generator, splitter, language)

    @classmethod
    def _around(
        cls,
        engine: Engine,
        encoder: Encoder | str | Path | None,
        generator: Generator | None,
        splitter: Splitter | None,
        language: str | None,
    ) -> Self:
        try:
            require_language_of(engine, language)
            return cls(engine, encoder, generator, splitter)
        except BaseException:
            engine.close()
            raise

    # Writing

    def add(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Add a document and what people asked for it; DuplicateDocument when its id is there."""
        given = as_document(document)
        return self.add_many([given], {given.id: queries}, if_version=if_version)[0]

    def add_many(
        self,
        documents: Iterable[DocumentLike],
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
        batch, asked = as_documents(documents), dict(queries or {})
        with self.engine.changing(if_version):
            require_new(batch, asked, (document.id for document in batch if document.id in self.engine))
            additions = self._writer.add(batch, asked, whole=whole, progress=progress)
            self._tuner.tune_if_due(progress)
        return additions

    def update(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Replace a document's text, title and metadata; what people asked for it is kept, `queries` come on top."""
        given = as_document(document)
        require_sound([given], {given.id: queries})
        with self.engine.changing(if_version):
            return self._writer.update(given, queries)

    def upsert(self, document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Addition:
        """Update the document if it is there, add it if not."""
        given = as_document(document)
        with self.engine.changing(if_version):
            change = self.update if given.id in self.engine else self.add
            return change(given, queries)

    def upsert_many(
        self,
        documents: Iterable[DocumentLike],
        queries: Mapping[str, Sequence[str]] | None = None,
        *,
        if_version: int | None = None,
        progress: Progress | None = None,
        whole: bool = False,
    ) -> list[Addition]:
        """Update those documents that are there, then add the others in portions; checked as by `add_many`.

        With `whole` all are committed at once or none is.
        """
        batch, asked = as_documents(documents), dict(queries or {})
        with self.engine.changing(if_version):
            require_new(batch, asked, ())
            additions = self._writer.upsert(batch, asked, whole=whole, progress=progress)
            self._tuner.tune_if_due(progress)
        return additions

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document; no other document's vector changes."""
        require_query(query)
        require_sound([], {id: [query]})
        with self.engine.changing(if_version):
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
        with self.engine.changing(if_version):
            additions = self._writer.attach(asked, progress)
            self._tuner.tune_if_due(progress)
        return additions

    def learn(
        self,
        clicks: Iterable[Click] | None,
        *,
        least: int = LEAST_CLICKS,
        share: float = LEAST_SHARE,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Learned:
        """Attach what people clicked to the documents they clicked; what became of every query and document.

        A query is learned for a document with at least `least` clicks that are `share` of the query's. What the
        document knows already, or a person taught for another, is not; so the same clicks again change nothing.
        """
        if clicks is None:
            raise InvalidInput("only a server keeps a log of clicks; give the clicks")
        given, threshold = list(clicks), Threshold(least, share)
        if dry_run:
            lessons = lessons_of(self.engine, given, threshold)
            return Learned(lessons=tuple(lessons), dry_run=True, version=self.version)
        with self.engine.changing(None):
            lessons = lessons_of(self.engine, given, threshold)
            if asked := queries_to_attach(lessons):
                self.attach(asked, progress=progress)
        return Learned(lessons=tuple(lessons), dry_run=False, version=self.version)

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
        with self.engine.changing(if_version):
            ids = self._writer.matching(where) if where is not None else [id] if isinstance(id, str) else id or ()
            return self._writer.delete(ids, resolve=resolve, progress=progress)
