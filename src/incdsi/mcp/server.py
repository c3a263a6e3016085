"""The tools: search and get, and, where writing is allowed, add, teach and delete."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Annotated, Any, ParamSpec, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

from incdsi import __version__
from incdsi.documents import Document, Hit, queries_to_json
from incdsi.errors import IncDSIError
from incdsi.search_index import SearchIndex

P = ParamSpec("P")
T = TypeVar("T")
MOST_HITS = 50
LONGEST = 2000  # characters of a hit's text; `get` has all of it
READING = (
    "Search finds documents in the user's own index by meaning and by words. Give it a question in plain words, not "
    "keywords; a hit's text may be cut, `get` returns the whole document."
)
WRITING = (
    " `teach` makes a question find a document from now on: call it when the user says which document was the right "
    "one. `add` stores a new document, `delete` removes one for good: ask the user first."
)
Where = Annotated[
    dict[str, Any] | None,
    Field(description='A filter on metadata, like {"lang": "en", "price": {"lt": 100}}; leave it out to search all.'),
]
Id = Annotated[str, Field(description="The id of a document, as search returns it.")]


class Found(BaseModel):
    """A document that was found; `cut` if its text is longer than what is here."""

    rank: int
    id: str
    title: str
    text: str
    cut: bool
    metadata: dict[str, Any]
    score: float
    confidence: float | None

    @classmethod
    def of(cls, hit: Hit) -> Found:
        document = hit.document
        return cls(
            rank=hit.rank,
            id=document.id,
            title=document.title,
            text=document.text[:LONGEST],
            cut=len(document.text) > LONGEST,
            metadata=dict(document.metadata),
            score=hit.score,
            confidence=hit.confidence,
        )


class Whole(BaseModel):
    """A document with what people asked for it."""

    id: str
    title: str
    text: str
    metadata: dict[str, Any]
    queries: list[str]
    taught: list[str]


class Changed(BaseModel):
    """What a change did; `conflicts` are documents that it now threatens, often near-duplicates, or that gave way."""

    id: str
    status: str
    explanation: str
    conflicts: list[str]


def make_server(index: SearchIndex, *, write: bool = False) -> MCPServer[Any]:
    """The index's tools; those that change it only if `write`. The caller closes the index."""
    server = MCPServer("incdsi", instructions=READING + (WRITING if write else ""), version=__version__)
    _add_reading(server, index)
    if write:
        _add_writing(server, index)
    return server


def _add_reading(server: MCPServer[Any], index: SearchIndex) -> None:
    reading = ToolAnnotations(read_only_hint=True, open_world_hint=False)

    @server.tool(annotations=reading)
    @_in_a_thread
    def search(
        query: Annotated[str, Field(description="What to look for, in plain words.")],
        k: Annotated[int, Field(description="How many documents.", ge=1, le=MOST_HITS)] = 5,
        where: Where = None,
    ) -> list[Found]:
        """Find the documents that best answer a question, best first."""
        return [Found.of(hit) for hit in index.search(query, k, where)]

    @server.tool(annotations=reading)
    @_in_a_thread
    def get(id: Id) -> Whole:
        """Read one whole document, with the questions it is known to answer."""
        return Whole(**index.get(id).to_json(), **queries_to_json(index.queries(id)))


def _add_writing(server: MCPServer[Any], index: SearchIndex) -> None:
    @server.tool(annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False))
    @_in_a_thread
    def add(
        id: Annotated[str, Field(description="A new id; one that is taken is refused.")],
        text: Annotated[str, Field(description="The text to be found.")],
        title: Annotated[str, Field(description="A short title.")] = "",
        metadata: Annotated[dict[str, Any] | None, Field(description="Values to filter on.")] = None,
        queries: Annotated[list[str] | None, Field(description="Questions that it answers.")] = None,
    ) -> Changed:
        """Store a new document; it is found at once."""
        return _changed(index.add(Document(id=id, text=text, title=title, metadata=metadata or {}), queries or ()))

    @server.tool(annotations=ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False))
    @_in_a_thread
    def teach(query: Annotated[str, Field(description="What people ask.")], id: Id) -> Changed:
        """Make a question find this document from now on; one that was taught it before gives it up and is named."""
        return _changed(index.teach(query, id))

    @server.tool(annotations=ToolAnnotations(destructive_hint=True, open_world_hint=False))
    @_in_a_thread
    def delete(id: Id) -> str:
        """Remove a document with its text and questions, for good."""
        index.delete(id)
        return f"deleted {id}"


def _changed(addition: Any) -> Changed:
    return Changed(
        id=addition.document_id,
        status=addition.status,
        explanation=addition.explanation,
        conflicts=list(addition.conflicts),
    )


def _in_a_thread(tool: Callable[P, T]) -> Callable[P, Any]:
    """Keeps the protocol answering meanwhile; what incdsi refuses is an error the model can read and act on."""

    @functools.wraps(tool)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await asyncio.to_thread(tool, *args, **kwargs)
        except IncDSIError as error:
            raise ToolError(str(error)) from error

    return call
