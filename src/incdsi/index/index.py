"""Index: add, edit, delete, teach, search; what it acknowledges is on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, overload

from incdsi.client import RemoteIndex
from incdsi.documents import DocumentLike, as_documents
from incdsi.engine.protocol import Engine
from incdsi.engine.settings import Method
from incdsi.errors import IndexNotFound
from incdsi.hyperparameters import Hyperparameters
from incdsi.index.draft import require_new, taught_among
from incdsi.index.editor import Editor
from incdsi.index.making import create, is_address, open_engine, open_remote, require_language_of
from incdsi.index.rehearsal import rehearse
from incdsi.index.stage_one import Training, stage_one, taken_over
from incdsi.progress import Progress
from incdsi.search_index import SearchIndex
from incdsi.text.encoders import Encoder, as_encoder
from incdsi.text.generators import Generator
from incdsi.text.passages import Splitter
from incdsi.text.queries import distinct


class Index(Editor):
    """A search index that learns, in a folder; made by `create`, `build` and `open`.

    Any number of threads may search while one writes, and any number of processes may search while one
    writes; they see a new document within a search. The first change takes the folder's lock; other handles of the
    same process write through the one that has it.

    >>> with Index.open("shop") as index:                               # doctest: +SKIP
    ...     index.add(Document(id="boots-18", text="Waterproof boots."), queries=["dry feet"])
    ...     index.search("boots for a river")[0].document_id
    """

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
