"""The verbs that change an index's documents; what they acknowledge is on the disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from incdsi.clicks import LEAST_CLICKS, LEAST_SHARE, Click, Learned, Threshold
from incdsi.documents import Addition, DocumentLike, as_document, as_documents
from incdsi.errors import InvalidInput
from incdsi.filters import Where
from incdsi.index.draft import require_new, require_query, require_sound
from incdsi.index.lessons import lessons_of, queries_to_attach
from incdsi.index.upkeep import Upkeep
from incdsi.progress import Progress


class Editor(Upkeep):
    """Add, update, teach, learn, delete."""

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
        held in memory until then, and `progress` tells how many are embedded. When enough queries are held out by then,
        the index tunes itself: `progress` goes on with another total, and `last_tuning` says what it chose.
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

        With `whole` all are committed at once or none is, and `progress` tells how many are embedded.
        """
        batch, asked = as_documents(documents), dict(queries or {})
        with self.engine.changing(if_version):
            require_new(batch, asked, ())
            additions = self._writer.upsert(batch, asked, whole=whole, progress=progress)
            self._tuner.tune_if_due(progress)
        return additions

    def teach(self, query: str, id: str, *, if_version: int | None = None) -> Addition:
        """From now on this query should find that document.

        The last word counts: a document that was taught the same query before gives it up, keeps its words and is
        placed anew; `conflicts` and `explanation` name it. No other document's vector changes.
        """
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
