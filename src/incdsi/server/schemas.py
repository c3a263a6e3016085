"""What goes over the wire, in both directions; docs/HTTP.md describes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictFloat, StrictInt, StrictStr

from incdsi import documents
from incdsi.documents import LONGEST_ID
from incdsi.info import Info, Quality

Scalar = StrictBool | StrictInt | StrictFloat | StrictStr | None
MetadataValue = Scalar | list[Scalar]
Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, examples=["boots-18"])]
Metadata = Annotated[dict[str, MetadataValue], Field(examples=[{"lang": "en", "year": 2024, "tags": ["new"]}])]
Queries = Annotated[list[Annotated[str, Field(min_length=1)]], Field(examples=[["dry feet in a river"]])]
Where = Annotated[
    dict[str, JsonValue],
    Field(description="A filter on metadata, see docs/HTTP.md.", examples=[{"lang": "en", "year": {"gte": 2000}}]),
]
Mode = Literal["fused", "learned", "lexical"]
Texts = Annotated[
    Literal["short", "all", "none"],
    Field(description="Whose texts to send; a long document has its passages either way."),
]
MOST_PASSAGES = 100
Passages = Annotated[int, Field(ge=1, le=MOST_PASSAGES, description="How many passages of each long document.")]
Log = Annotated[bool, Field(description="Whether the server's log of queries, if there is one, may keep it.")]
DEEPEST_RANK = 100  # hits searched for a taught document
MOST_HITS = 1000
MOST_NEIGHBOURS = 50


class Asked(BaseModel):
    """A request; unknown fields are refused, so that a typo is noticed, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class WithQueries(Asked):
    """Queries people asked, and queries that were taught."""

    queries: Queries = []
    taught: Queries = []

    def asked(self) -> list[str]:
        """All of them, as the index takes them."""
        return [*self.queries, *map(documents.Taught, self.taught)]


class DocumentBody(WithQueries):
    """A document whose id is in the path."""

    text: Annotated[str, Field(examples=["Waterproof boots."])]
    title: Annotated[str, Field(examples=["Boots"])] = ""
    metadata: Metadata = {}


class DocumentIn(DocumentBody):
    """A document to add, with its queries."""

    id: Id


class DocumentsIn(Asked):
    """Documents to add together, all or none."""

    documents: Annotated[list[DocumentIn], Field(min_length=1)]


class DocumentPatch(WithQueries):
    """Fields to replace in a document; the others stay, and queries are added to those it has."""

    text: str | None = None
    title: str | None = None
    metadata: Metadata | None = None


class DeleteRequest(Asked):
    """Documents to delete, by id or by filter, not both; a filter that matches everything is refused."""

    ids: list[Id] | None = None
    where: Where | None = None
    resolve: bool = False


class ListRequest(Asked):
    """Documents to list: all, or those that pass a filter or have these ids, a page at a time."""

    where: Where | None = None
    ids: list[Id] | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    after: Id | None = None
    missing_ok: bool = False


class CountRequest(Asked):
    """Documents to count: all, or those that pass a filter."""

    where: Where | None = None


class SearchRequest(Asked):
    """One query or many, not both."""

    query: Annotated[str, Field(min_length=1, examples=["waterproof hiking boots"])] | None = None
    queries: list[Annotated[str, Field(min_length=1)]] | None = None
    k: Annotated[int, Field(ge=1, le=MOST_HITS)] = 10
    where: Where | None = None
    mode: Mode = "fused"
    least: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    passages: Passages = 1
    texts: Texts = "short"
    log: Log = True


class SearchQuery(BaseModel):
    """A search as the query of an address; `where` is JSON."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    q: Annotated[str, Field(min_length=1, description="What to look for.", examples=["waterproof hiking boots"])]
    k: Annotated[int, Field(ge=1, le=MOST_HITS, description="How many hits.")] = 10
    where: Annotated[str | None, Field(description="A filter on metadata, as JSON.", examples=['{"lang": "en"}'])] = (
        None
    )
    mode: Annotated[Mode, Field(description="What ranks them.")] = "fused"
    least: Annotated[float | None, Field(ge=0.0, le=1.0, description="The least confidence of a hit.")] = None
    passages: Passages = 1
    texts: Texts = "short"
    log: Log = True


class TeachRequest(Asked):
    """A query and the document it should find from now on."""

    query: Annotated[str, Field(min_length=1, examples=["boots that survive a river"])]
    id: Id


class Counted(Answer):
    """How many documents there are."""

    documents: int
    version: int


class DocumentOut(Answer):
    """A stored document."""

    id: str
    title: str
    text: str
    metadata: dict[str, MetadataValue]


class DocumentWithQueries(DocumentOut):
    """A document with its asked and taught queries; PUT it to restore it after a delete."""

    queries: list[str]
    taught: list[str]
    version: int


class AdditionOut(Answer):
    """What adding or changing one document did; `margin` is null if it has no rival or no query."""

    id: str
    status: str
    explanation: str
    margin: float | None
    conflicts: list[str]
    seconds: dict[str, float]


class Added(Answer):
    """What a batch did, in order."""

    additions: list[AdditionOut]
    milliseconds: float
    version: int


class Upserted(Added):
    """What a batch of upserts did, in order; `created` of them are new."""

    created: int


class Changed(AdditionOut):
    """What a PUT or PATCH did; `created` if the document is new."""

    created: bool
    milliseconds: float
    version: int


class Refusal(Answer):
    """A line of a stream that was not added."""

    line: int
    id: str | None
    error: str
    detail: str


class Streamed(Answer):
    """What a stream did, line by line; lists the first 1,000 refusals."""

    lines: int
    added: int
    refused: int
    refusals: list[Refusal]
    conflicts: int
    milliseconds: float
    version: int


class Deleted(Answer):
    deleted: int
    milliseconds: float
    version: int


class SnippetOut(Answer):
    """A few words of a text, and where those that were asked begin and end in it, counted in code points."""

    text: str
    marks: list[tuple[int, int]]


class PassageOut(Answer):
    """A stretch of a long document's text, from `start` to `end`, and the headings it is under."""

    headings: list[str]
    start: int
    end: int
    text: str
    snippet: SnippetOut


class DocumentFound(Answer):
    """A stored document; `text` is null where it was not asked for."""

    id: str
    title: str
    text: str | None
    metadata: dict[str, MetadataValue]


class HitOut(Answer):
    """One result; `learned`, `nearest` and `lexical` add up to a fused score, and are null in the mode of another.

    `confidence` is the probability that it is right, null while the index cannot tell. `passages` are those of a long
    document that match best.
    """

    rank: int
    score: float
    learned: float | None
    lexical: float | None
    nearest: float | None
    confidence: float | None
    document: DocumentFound
    passages: list[PassageOut]
    snippet: SnippetOut


class Found(Answer):
    """The hits of one query."""

    query: str
    hits: list[HitOut]
    seconds: float
    version: int


class FoundOne(Answer):
    query: str
    hits: list[HitOut]


class FoundMany(Answer):
    """The hits of many queries, in order."""

    results: list[FoundOne]
    seconds: float
    version: int


class Taught(AdditionOut):
    """What teaching did; a rank is null if the document is not among the best 100."""

    query: str
    rank_before: int | None
    rank_after: int | None
    milliseconds: float
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InfoOut(Info):
    """Counts and settings of the index, its name if it is one of several, what is logged, and the caller's access
    and limits."""

    name: str | None
    logs: dict[str, bool]
    incdsi: str
    access: Literal["write", "read"]
    limits: dict[str, float]


class Point(Answer):
    """A document on the map; most lie within -1 and 1."""

    id: str
    title: str
    x: float
    y: float


class Neighbour(Point):
    """A neighbour; `similarity` is the cosine of the two vectors."""

    similarity: float


class MapOut(Answer):
    """All documents in two dimensions; a new `axes` means that every point has moved."""

    points: list[Point]
    documents: int
    axes: int
    version: int


class NeighboursOut(Answer):
    """A document on the map and its neighbours, nearest first."""

    point: Point
    neighbours: list[Neighbour]
    axes: int
    version: int


class QualityPoint(Answer):
    """Quality on held-out queries at one moment, by mode of search."""

    at: Annotated[str, Field(description="UTC, ISO 8601", examples=["2024-05-01T12:00:00Z"])]
    documents: int
    additions: int
    version: int
    quality: dict[str, Quality]


class Figures(Answer):
    """What the server has done since it started; medians cover the latest 1,000 and are null before the first."""

    documents: int
    version: int
    started: str
    additions: int
    searches: int
    taught: int
    deleted: int
    conflicts: int
    waiting: int
    p50_add_ms: float | None
    p50_search_ms: float | None
    quality: list[QualityPoint]
    advice: str | None


class VersionOut(Answer):
    """How many documents there are, and how many changes were made."""

    documents: int
    version: int
    incdsi: str


class Health(Answer):
    status: Literal["ok"]


class Problem(Answer):
    """An error (RFC 9457): `detail` is a sentence for people, `error` the exception's name for programs."""

    type: Annotated[str, Field(examples=["urn:incdsi:problem:UnknownDocument"])]
    title: str
    status: int
    detail: str
    error: Annotated[str, Field(examples=["UnknownDocument"])]
    request_id: str
