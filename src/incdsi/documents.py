"""The nouns users meet: Document, Query, Taught, Hit, Passage, Snippet, Addition."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, NoReturn, Self, TypeVar

from incdsi.errors import InvalidDocument

Scalar = str | int | float | bool | None
MetadataValue = Scalar | date | Sequence[Scalar | date]
"""What may be given; `plain` says what is kept: a Scalar, or a tuple of them."""
INT64_LIMIT = 2**63
LONGEST_ID = 1024  # characters of an id that can be added
SHOWN = 60  # characters of a text in a repr
V = TypeVar("V")


class FrozenDict(dict[str, V]):
    """A dict that hashes and cannot be changed; it pickles, copies and passes through `dataclasses.asdict`."""

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError("this mapping cannot be changed; make a new one with dict(...)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple[type, tuple[dict[str, V]]]:
        return type(self), (dict(self),)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Document:
    """A piece of text with an id; `metadata` holds plain values and lists of them to filter on.

    A date is kept as ISO text, which sorts by time (a datetime with an offset in UTC), a list as a tuple.

    >>> Document(id="boots-18", text="Waterproof boots.", metadata={"tags": ["new"], "made": date(2024, 5, 1)}).metadata
    {'tags': ('new',), 'made': '2024-05-01'}
    """

    id: str
    text: str
    title: str = ""
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id:
            raise InvalidDocument(f"expected a document id of at least one character, found {self.id!r}")
        for name in ("text", "title"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise InvalidDocument(
                    f"document {self.id!r}: expected {name} to be a string, found {type(value).__name__}"
                )
        object.__setattr__(self, "metadata", FrozenDict(_checked(self.id, self.metadata)))

    @property
    def content(self) -> str:
        """Title and text together: what is embedded and what is searched by words."""
        return f"{self.title}\n{self.text}".strip() if self.title else self.text.strip()

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_json`."""
        return {"id": self.id, "title": self.title, "text": self.text, "metadata": dict(self.metadata)}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        return cls(id=plain["id"], title=plain["title"], text=plain["text"], metadata=plain["metadata"])

    def __repr__(self) -> str:
        title = f", title={_short(self.title)}" if self.title else ""
        metadata = f", metadata={reprlib.repr(dict(self.metadata))}" if self.metadata else ""
        return f"Document(id={self.id!r}, text={_short(self.text)}{title}{metadata})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A text that should find a document; `generated` when no person wrote it."""

    text: str
    document_id: str
    generated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise InvalidDocument(
                f"query for document {self.document_id!r}: expected a text of at least one character, "
                f"found {self.text!r}"
            )


class Taught(str):
    """A query that a person said should find its document; a text like any other wherever queries are given.

    `Index.queries` tells them apart, so that a document added again with what it had is taught again.

    >>> Taught("boots that survive a river") == "boots that survive a river"
    True
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Taught({super().__repr__()})"


def queries_to_json(queries: Sequence[str]) -> dict[str, Any]:
    """Queries as plain values that still say which were taught; the inverse of `queries_from_json`."""
    return {"queries": list(queries), "taught": [text for text in queries if isinstance(text, Taught)]}


def queries_from_json(plain: Mapping[str, Any]) -> list[str]:
    taught = set(plain.get("taught", ()))
    return [Taught(text) if text in taught else text for text in plain["queries"]]


class _MadeLater:
    """A dataclass whose values may be made when the first of them is asked for."""

    __slots__ = ("_make",)

    @classmethod
    def later(cls, make: Callable[[], Self]) -> Self:
        """What `make` gives, which is not called before anybody looks."""
        one = object.__new__(cls)
        object.__setattr__(one, "_make", make)
        return one

    def __getattr__(self, name: str) -> Any:
        if name not in type(self).__slots__ or name == "_make":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = self._make()
        for field_name in type(self).__slots__:
            object.__setattr__(self, field_name, getattr(made, field_name))
        return getattr(made, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet(_MadeLater):
    """A few words of a text on one line, and where those that were asked are in it: (begin, end), rising."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()

    def marked(self, before: str = "**", after: str = "**") -> str:
        """The text with something before and after each of these words.

        >>> Snippet(text="Waterproof boots.", marks=((11, 16),)).marked("<b>", "</b>")
        'Waterproof <b>boots</b>.'
        """
        ends = (0, *(end for _, end in self.marks))
        pieces = [
            f"{self.text[last:start]}{before}{self.text[start:end]}{after}"
            for last, (start, end) in zip(ends, self.marks, strict=False)
        ]
        return "".join((*pieces, self.text[ends[-1] :]))

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_json`."""
        return {"text": self.text, "marks": [list(mark) for mark in self.marks]}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        return cls(text=plain["text"], marks=tuple((start, end) for start, end in plain["marks"]))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Passage:
    """A stretch of a long document's text, from `start` to `end`, and the headings it is under, the outermost first."""

    text: str
    start: int
    end: int
    headings: tuple[str, ...]
    snippet: Snippet

    def to_json(self) -> dict[str, Any]:
        """Plain values; the inverse of `from_json`."""
        plain = {"headings": list(self.headings), "start": self.start, "end": self.end, "text": self.text}
        return {**plain, "snippet": self.snippet.to_json()}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        return cls(
            text=plain["text"],
            start=plain["start"],
            end=plain["end"],
            headings=tuple(plain["headings"]),
            snippet=Snippet.from_json(plain["snippet"]),
        )

    def __repr__(self) -> str:
        return f"Passage({self.start}, {self.end}, headings={self.headings}, {_short(self.text)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Hit:
    """One search result; `rank` counts from 1.

    A fused score is the sum of its `learned`, `nearest` and `lexical` parts; by one of them alone the others are None.
    `confidence` is the probability that this hit is right; None before the index has questions to learn it from.
    `passages` are those of a long document that match best, one unless more were asked for; a short one has none.
    `snippet` is the stretch of the best of them, or of a short text, that says most of what was asked.
    """

    document_id: str
    score: float
    rank: int
    document: Document
    learned: float | None = None
    lexical: float | None = None
    nearest: float | None = None
    confidence: float | None = None
    passages: tuple[Passage, ...] = ()
    snippet: Snippet = Snippet(text="")

    @property
    def passage(self) -> Passage | None:
        """The passage of a long document that matches best."""
        return self.passages[0] if self.passages else None

    def __repr__(self) -> str:
        shown = self.document.title or self.document.text
        return f"Hit(rank={self.rank}, score={self.score:.3f}, document_id={self.document_id!r}, {_short(shown)})"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Addition:
    """What adding one document did.

    `status` is one word (solved, compromised, infeasible, unfinished) and `explanation` says what it means and what
    to do about it; `margin` is the smallest lead over the best rival among its queries (negative: a query is lost),
    `conflicts` are the ids of documents it now threatens or that gave up what it was taught, `seconds` the time of each
    step.
    """

    document_id: str
    status: str
    explanation: str
    margin: float
    conflicts: tuple[str, ...]
    seconds: Mapping[str, float]

    def __post_init__(self) -> None:
        object.__setattr__(self, "seconds", FrozenDict(self.seconds))

    def to_json(self) -> dict[str, Any]:
        """Plain values, the margin null if there is no rival or no query; the inverse of `from_json`."""
        return {
            "id": self.document_id,
            "status": self.status,
            "explanation": self.explanation,
            "margin": self.margin if math.isfinite(self.margin) else None,
            "conflicts": list(self.conflicts),
            "seconds": dict(self.seconds),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Self:
        return cls(
            document_id=plain["id"],
            status=plain["status"],
            explanation=plain.get("explanation", plain["status"]),  # answers of older servers have the word alone
            margin=math.inf if plain["margin"] is None else plain["margin"],
            conflicts=tuple(plain["conflicts"]),
            seconds=plain["seconds"],
        )

    def __repr__(self) -> str:
        conflicts = f", conflicts={self.conflicts}" if self.conflicts else ""
        took = f"{1000 * sum(self.seconds.values()):.1f} ms"
        return f"Addition({self.document_id!r}, {self.status}, margin={self.margin:.3f}{conflicts}, {took})"


DocumentLike = Document | Mapping[str, Any]


def as_document(given: DocumentLike) -> Document:
    """The document itself, or the one in a mapping of id, text, title, metadata; other names in it are metadata.

    >>> as_document({"id": "boots-18", "text": "Waterproof boots.", "lang": "en"})
    Document(id='boots-18', text='Waterproof boots.', metadata={'lang': 'en'})
    """
    if isinstance(given, Document):
        return given
    if not isinstance(given, Mapping):
        raise InvalidDocument(f"expected a Document or a dict, found {type(given).__name__}")
    rest = dict(given)
    own = {name: rest.pop(name) for name in ("id", "text", "title", "metadata") if name in rest}
    if "id" not in own:
        raise InvalidDocument(f"the document has no 'id', only {', '.join(map(repr, given)) or 'nothing'}")
    name = f"document {own['id']!r:.80}"
    if asked := rest.keys() & {"queries", "taught"}:
        raise InvalidDocument(f"{name}: pass its {min(asked)} as an argument of their own, not inside the document")
    metadata = own.pop("metadata", None) or {}
    if isinstance(metadata, Mapping) and (twice := rest.keys() & metadata.keys()):
        raise InvalidDocument(f"{name}: {min(twice)!r} is given both inside metadata and beside it; keep one")
    return Document(**{"text": "", **own}, metadata={**metadata, **rest} if isinstance(metadata, Mapping) else metadata)


def as_documents(given: Iterable[DocumentLike]) -> list[Document]:
    """The documents of a list; a single one is refused, which would be taken apart."""
    if isinstance(given, Document | Mapping | str):
        raise InvalidDocument(f"expected a list of documents, found a single {type(given).__name__}; put it in a list")
    return [as_document(one) for one in given]


def _short(text: str) -> str:
    """The beginning of a text and how long it is, on one line."""
    return repr(text) if len(text) <= SHOWN else f"{text[:SHOWN]!r}… ({len(text):,} characters)"


def plain(value: Any) -> Any:
    """The value as it is kept: numpy's as Python's own, a date as ISO text, a list as a tuple; others as they are."""
    one = _plain_scalar(value)
    return tuple(map(_plain_scalar, one)) if isinstance(one, list | tuple) else one


def _plain_scalar(value: Any) -> Any:
    if hasattr(value, "dtype"):
        # Of nanoseconds numpy would make a bare number.
        value = (value.astype("datetime64[us]") if value.dtype.str.endswith("M8[ns]") else value).tolist()
    if isinstance(value, datetime):
        return None if value != value else _iso(value)  # pandas' NaT is unequal to itself
    return value.isoformat() if isinstance(value, date) else value


def _iso(moment: datetime) -> str:
    """Sorts as text by time: with +00:00, not Z, which would put 12:00:00 after 12:00:00.5."""
    try:
        return datetime.isoformat(moment if moment.utcoffset() is None else moment.astimezone(UTC))
    except OverflowError as error:
        raise InvalidDocument(f"{moment} has no date in UTC; give it as text") from error


def _checked(document_id: str, metadata: Mapping[str, MetadataValue]) -> dict[str, Scalar | tuple[Scalar, ...]]:
    if not isinstance(metadata, Mapping):
        raise InvalidDocument(
            f"document {document_id!r}: expected metadata to be a mapping, found {type(metadata).__name__}"
        )
    return {key: _kept(document_id, key, value) for key, value in metadata.items()}


def _kept(document_id: str, key: object, value: MetadataValue) -> Scalar | tuple[Scalar, ...]:
    if not isinstance(key, str):
        raise InvalidDocument(f"document {document_id!r}: metadata names must be strings, found {key!r}")
    name = f"document {document_id!r}: metadata {key!r}"
    kept: Scalar | tuple[Scalar, ...] = plain(value)
    for one in kept if isinstance(kept, tuple) else (kept,):
        if not isinstance(one, str | int | float | bool | None):
            inside = " in a list" if isinstance(kept, tuple) else ""
            raise InvalidDocument(
                f"document {document_id!r}: expected metadata {key!r} to be a string, number, boolean, date or null, "
                f"or a list of these, found {type(one).__name__}{inside}; flatten it first"
            )
        check_number(one, name)
    return kept


def check_number(value: object, name: str) -> None:
    """Refuses whole numbers beyond 64 bits, infinities and NaN, which no store holds exactly."""
    if isinstance(value, int) and not -INT64_LIMIT <= value < INT64_LIMIT:
        raise InvalidDocument(f"{name}: expected an integer of at most 64 bits, found {value!r:.60}; store it as text")
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidDocument(f"{name}: expected a finite number, found {value}; use null or text")


def fold(text: str) -> str:
    """The text of a query with whitespace and case folded, for comparison."""
    return " ".join(text.split()).casefold()


def utf8(text: str, name: str) -> bytes:
    """The bytes of a text; refuses lone surrogates, which no file could give back."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidDocument(f"{name}: not valid Unicode (it has a lone surrogate); clean the text first") from None
