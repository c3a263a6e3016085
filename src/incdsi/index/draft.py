"""Documents and query texts become drafts: generate, choose what to hold out, encode."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from incdsi.documents import LONGEST_ID, Document, Taught, fold, utf8
from incdsi.errors import DuplicateDocument, InvalidDocument, InvalidInput, UnknownDocument
from incdsi.filters import comparables
from incdsi.index.ahead import Ahead, Wording
from incdsi.progress import Progress, Stopwatch
from incdsi.records import Record, StoredPassage, StoredQuery, TextVectors, passage_text, texts_of, words_of
from incdsi.text.encoders import Encoder, for_documents
from incdsi.text.generators import Generator, generate_all
from incdsi.text.one_pass import embed
from incdsi.text.passages import Splitter, centre, embedded, passages_of
from incdsi.text.queries import distinct

LEAST_TO_HOLD_OUT = 3  # natural queries of a document, of which one may be held out
ONE_IN = 3  # documents that hold one out
MANY = 20  # natural queries of a document, of which one is held out, whichever document it is
PORTION = 128  # documents encoded at a time
STEP = 32  # of a batch, embedded before progress is told
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Draft:
    """A document with its text's embedding (h,), queries and passages, not yet placed; `row` is or will be its own.

    The text of a long one is embedded as the mean of its passages. `start` is a vector that it had under the same
    encoder: nothing but the time to solve depends on it.
    """

    document: Document
    embedding: Floats
    queries: tuple[StoredQuery, ...]
    passages: tuple[StoredPassage, ...] = ()
    row: int = 0
    start: Floats | None = None

    @classmethod
    def of(cls, record: Record) -> Draft:
        """What a stored document is placed by."""
        return cls(
            document=record.document,
            embedding=record.anchor,
            queries=record.queries,
            passages=record.passages,
            row=record.row,
        )

    @property
    def used(self) -> list[int]:
        """Places of the queries it is placed by: those that are neither held out nor given up."""
        return [place for place, query in enumerate(self.queries) if query.used]

    @property
    def words(self) -> list[str]:
        """What it will be found by in lexical search, by the best of them."""
        return words_of(self.document, self.queries, self.passages)

    @property
    def texts(self) -> TextVectors:
        """The embeddings of what may be nearest to a query."""
        return texts_of(self.embedding, self.queries, self.passages)

    @property
    def wording(self) -> Wording:
        """Its queries as they are before they are embedded."""
        return tuple((query.text, query.generated, query.taught, query.held_out) for query in self.queries)

    @property
    def taught(self) -> bool:
        """Whether it was taught anything."""
        return any(query.taught for query in self.queries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Text:
    """A query before it is embedded."""

    text: str
    generated: bool = False
    held_out: bool = False
    given_up: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """How documents are prepared: the encoder, ways to query generator and splitter, whether queries are held out.

    In `one_pass`, generated queries that stand in the text are embedded with it. What was drafted `ahead` is not
    drafted again.

    No query is generated for a document that another has, one that is indexed (`elsewhere`), or one before it in the
    batch, unless others have them all. That depends on the order of the changes alone, not on what is added together
    (decision 0009).
    """

    encoder: Encoder
    generator: Callable[[], Generator]
    splitter: Callable[[], Splitter]
    hold_out: bool
    elsewhere: Callable[[str, int], bool]
    one_pass: bool = False
    ahead: Ahead = field(default_factory=Ahead)

    def drafts_ahead(self, documents: Sequence[Document], natural: Mapping[str, Sequence[str]]) -> None:
        """Draft new documents before their turn to be written."""
        watch = Stopwatch()
        drafts = self.drafts(documents, natural, 0, watch)
        self.ahead.keep(drafts, self._by, watch.seconds["encode"])

    def drafts(
        self,
        documents: Sequence[Document],
        natural: Mapping[str, Sequence[str]],
        first_row: int,
        watch: Stopwatch,
        progress: Progress | None = None,
    ) -> list[Draft]:
        """New documents, each with its natural and generated queries, for the rows from the first on.

        `progress` tells how many are embedded.
        """
        with watch.step("generate"):
            generated = generate_all(documents, self.generator())
            asked: list[list[_Text]] = []
            before: set[str] = set()
            for document in documents:
                own = distinct(natural.get(document.id, ()))
                asked.append(self._asked(document, own, generated[document.id], before=before))
                before |= {fold(one.text) for one in asked[-1]}
        known = self._drafted_ahead(documents, asked, watch)
        new = [place for place in range(len(documents)) if place not in known]
        with watch.step("encode"):
            for start in range(0, len(new), STEP):
                some = new[start : start + STEP]
                encoded = self._encoded([documents[place] for place in some], [asked[place] for place in some])
                known |= zip(some, encoded, strict=True)
                if progress is not None:
                    progress(len(known), len(documents))
        return [replace(known[place], row=first_row + place) for place in range(len(documents))]

    def _drafted_ahead(
        self, documents: Sequence[Document], asked: Sequence[Sequence[_Text]], watch: Stopwatch
    ) -> dict[int, Draft]:
        """Those drafted already as they would be now, by place; the time they took is counted."""
        found = {}
        for place, (document, some) in enumerate(zip(documents, asked, strict=True)):
            wording = tuple((str(one.text), one.generated, isinstance(one.text, Taught), one.held_out) for one in some)
            made = self.ahead.find(document, wording, self._by)
            if made is not None:
                found[place], seconds = made
                watch.count("encode", seconds)
        return found

    @property
    def _by(self) -> object:
        return self.encoder.fingerprint, self.one_pass

    def redraft(self, record: Record, document: Document, natural: Sequence[str], watch: Stopwatch) -> Draft:
        """A stored document with another text: what people asked is kept, what was generated is made anew.

        What was given up stays so while another document has it. Passages that are the same as before are not embedded
        again.
        """
        held_out = {query.text for query in record.queries if query.held_out}
        given_up = {one.text for one in record.queries if one.given_up and self.elsewhere(one.text, record.row)}
        with watch.step("generate"):
            generated = generate_all([document], self.generator())[document.id]
            both = distinct([*asked_of(record), *natural])
            asked = self._asked(document, both, generated, held_out, given_up, row=record.row)
        with watch.step("encode"):
            (draft,) = self._encoded([document], [asked], embedded(record.document, record.passages))
        return replace(draft, row=record.row)

    def attached(
        self, records: Sequence[Record], natural: Mapping[str, Sequence[str]], watch: Stopwatch
    ) -> list[Draft]:
        """Stored documents with more of what people asked; those that know it all already are left out.

        What is known is not embedded again. One that held too little out holds out more now.
        """
        new = [_unknown(record, natural[record.document.id]) for record in records]
        with watch.step("encode"):
            vectors = iter(self.encoder.encode([text for some in new for text in some]))
        return [
            self._joined(record, [_stored(_Text(text=text), next(vectors)) for text in some])
            for record, some in zip(records, new, strict=True)
            if some
        ]

    def _joined(self, record: Record, new: Sequence[StoredQuery]) -> Draft:
        """A person's query takes the place of the same one generated, a taught one that of the same one asked."""
        known = {fold(query.text) for query in new}
        both = [query for query in record.queries if fold(query.text) not in known] + list(new)
        asked = [query for query in both if not (query.generated or query.taught or query.given_up)]
        others = [query for query in both if query.generated or query.taught or query.given_up]
        if self.hold_out:
            already = [query.text for query in asked if query.held_out]
            apart = held_out_of(record.document.id, [query.text for query in asked], already)
            asked = [replace(query, held_out=query.text in apart) for query in asked]
        return replace(Draft.of(record), queries=(*asked, *others))

    def taught(self, record: Record, query: str, watch: Stopwatch) -> Draft:
        """A stored document with one more query, which is never held out."""
        with watch.step("encode"):
            new = _stored(_Text(text=Taught(query)), self.encoder.encode([query])[0])
        others = tuple(old for old in record.queries if fold(old.text) != fold(query))
        return replace(Draft.of(record), queries=(*others, new))

    def _asked(
        self,
        document: Document,
        natural: Sequence[str],
        generated: Sequence[str],
        held_out: Iterable[str] | None = None,
        given_up: Container[str] = (),
        row: int = 0,
        before: Container[str] = (),
    ) -> list[_Text]:
        """What people asked, what was generated and nobody has, what was taught; `row` when it is stored already.

        `before` has the folded queries of documents that come before it.
        """
        asked = [text for text in natural if not isinstance(text, Taught)]
        if held_out is None:
            held_out = held_out_of(document.id, asked) if self.hold_out else ()
        known, apart = {fold(text) for text in natural}, set(held_out)
        unasked = [text for text in generated if fold(text) not in known]
        own = [text for text in unasked if fold(text) not in before and not self.elsewhere(text, row)]
        return [
            *(_Text(text=text, held_out=text in apart, given_up=text in given_up) for text in asked),
            *(_Text(text=text, generated=True) for text in own or unasked),
            *(_Text(text=text) for text in taught_among(natural)),
        ]

    def _encoded(
        self,
        documents: Sequence[Document],
        asked: Sequence[Sequence[_Text]],
        known: Mapping[str, Floats] | None = None,
    ) -> list[Draft]:
        passages = passages_of(documents, self.encoder, self.splitter(), known)
        contents, texts = [document.content for document in documents], [[one.text for one in some] for some in asked]
        inside = [[one.text for one in some if one.generated] for some in asked] if self.one_pass else ()
        anchors, vectors = embed(self.encoder, contents, texts, inside)
        return [
            Draft(
                document=document,
                embedding=centre(parts) if parts else anchor,
                queries=tuple(map(_stored, some, own)),
                passages=parts,
            )
            for document, anchor, some, own, parts in zip(documents, anchors, asked, vectors, passages, strict=True)
        ]


def require_new(documents: Sequence[Document], queries: Mapping[str, Sequence[str]], known: Iterable[str]) -> None:
    """Refuse a batch with an id twice, an id that is indexed, an empty query, or queries of somebody else."""
    seen: set[str] = set()
    for document in documents:
        if document.id in seen:
            raise DuplicateDocument(f"expected each id once, found {document.id!r} twice in the batch; remove one")
        seen.add(document.id)
    for id in known:
        raise DuplicateDocument(f"expected a new id, found {id!r} in the index; update or upsert it instead")
    for id in queries:
        if id not in seen:
            raise UnknownDocument(f"expected queries of documents in the batch, found some for {id!r}; add it first")
    require_sound(documents, queries)


def require_query(text: object) -> None:
    """Refuse what is no text, and one without a character."""
    if not _is_query(text):
        raise InvalidInput(f"expected a query of at least one character, found {text!r}")


def require_sound(documents: Sequence[Document], queries: Mapping[str, Sequence[str]]) -> None:
    """Refuse what could not be stored: ids that are too long, queries that are no texts, lone surrogates."""
    for document in documents:
        name = f"document {document.id!r:.80}"
        if len(document.id) > LONGEST_ID:
            raise InvalidDocument(f"{name}: its id has {len(document.id):,} characters; shorten it to {LONGEST_ID:,}")
        for text in (document.id, document.title, document.text, *document.metadata):
            utf8(text, name)
        for kind, value in (one for values in document.metadata.values() for one in comparables(values)):
            if kind == "text":
                utf8(str(value), name)
    for id, texts in queries.items():
        if not isinstance(texts, Sequence) or isinstance(texts, str) or not all(map(_is_query, texts)):
            raise InvalidInput(f"document {id!r}: expected its queries as a list of texts, found {texts!r:.80}")
        for text in texts:
            utf8(text, f"a query of document {id!r}")


def asked_of(record: Record) -> list[str]:
    """What people asked for a stored document, and taught it."""
    return [Taught(one.text) if one.taught else one.text for one in record.queries if not one.generated]


def taught_among(texts: Iterable[str]) -> list[Taught]:
    """Those of these queries that were taught."""
    return [text for text in texts if isinstance(text, Taught)]


def was_taught(record: Record, query: str) -> bool:
    """Whether a stored document was taught this query."""
    return any(one.taught and fold(one.text) == fold(query) for one in record.queries)


def untaught(record: Record, query: str) -> Draft:
    """A stored document that is no longer taught this query: it keeps the words, and gives up winning it."""
    queries = tuple(
        replace(one, taught=False, given_up=True, preserved=False, own_score=0.0)
        if one.taught and fold(one.text) == fold(query)
        else one
        for one in record.queries
    )
    return replace(Draft.of(record), queries=queries)


def _stored(one: _Text, embedding: Floats) -> StoredQuery:
    return StoredQuery(
        text=str(one.text),
        embedding=embedding,
        generated=one.generated,
        taught=isinstance(one.text, Taught),
        held_out=one.held_out,
        given_up=one.given_up,
    )


def _unknown(record: Record, natural: Sequence[str]) -> list[str]:
    """What people did not ask before, or did not teach."""
    asked = {fold(query.text) for query in record.queries if not query.generated}
    taught = {fold(query.text) for query in record.queries if query.taught}
    return [text for text in distinct(natural) if fold(text) not in (taught if isinstance(text, Taught) else asked)]


def _is_query(text: object) -> bool:
    return isinstance(text, str) and bool(text.strip())


def held_out_of(document_id: str, natural: Sequence[str], already: Sequence[str] = ()) -> list[str]:
    """The queries to hold out, those that are `already` and others by hash: the same on every machine."""
    one = len(natural) >= LEAST_TO_HOLD_OUT and not _hash(document_id) % ONE_IN
    count = max(len(natural) // MANY, int(one)) - len(already)
    others = sorted((text for text in natural if text not in already), key=_hash)
    return [*already, *others[: max(0, count)]]


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big")


def reencoded(records: Sequence[Record], encoder: Encoder, one_pass: bool, progress: Progress | None) -> list[Record]:
    """The same documents and queries as another encoder embeds them."""
    result: list[Record] = []
    for start in range(0, len(records), PORTION):
        portion = records[start : start + PORTION]
        contents, texts = [one.document.content for one in portion], [[q.text for q in one.queries] for one in portion]
        inside = [[query.text for query in one.queries if query.generated] for one in portion] if one_pass else ()
        anchors, vectors = embed(encoder, contents, texts, inside)
        cut = [passage_text(one.document, passage.piece) for one in portion for passage in one.passages]
        pieces = iter(for_documents(encoder).encode(cut))
        for record, anchor, own in zip(portion, anchors, vectors, strict=True):
            queries = tuple(replace(query, embedding=one) for query, one in zip(record.queries, own, strict=True))
            passages = tuple(replace(passage, embedding=next(pieces)) for passage in record.passages)
            middle = centre(passages) if passages else anchor
            result.append(replace(record, anchor=middle, queries=queries, passages=passages))
        if progress is not None:
            progress(len(result), len(records))
    return result
