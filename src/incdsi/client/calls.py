"""Every verb as one HTTP request and the way to read its answer; the clients send them."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote, urlencode

from incdsi.clicks import Click, Learned, Threshold, summed
from incdsi.documents import (
    LONGEST_ID,
    Addition,
    Document,
    DocumentLike,
    Hit,
    Passage,
    Snippet,
    as_document,
    plain,
    queries_from_json,
    queries_to_json,
    utf8,
)
from incdsi.errors import DuplicateDocument, InvalidInput, ServerError, UnknownDocument
from incdsi.filters import Where
from incdsi.gaps import Gaps
from incdsi.info import Info
from incdsi.progress import Progress

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
PORTION = 256  # documents sent together
DOCUMENTS = "/v1/documents"
KEYED = "Idempotency-Key"
PAIRS = 1000  # of a query and a document that was clicked, sent together


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T_co]):
    """A request and how to read what comes back."""

    method: str
    path: str
    read: Callable[[Any], T_co]
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def keyed(self) -> bool:
        """Whether it is a write that the server knows again."""
        return KEYED in self.headers


def count(where: Where | None = None) -> Call[int]:
    def read(found: Mapping[str, Any]) -> int:
        return int(found["documents"])

    if where is None:
        return Call(method="GET", path="/v1/version", read=read)
    return _asked("/v1/documents/count", {"where": where}, read)


def alive() -> Call[bool]:
    """Answered whatever the server is busy with."""
    return Call(method="GET", path="/healthz", read=lambda found: True)


def version() -> Call[int]:
    return Call(method="GET", path="/v1/version", read=lambda found: int(found["version"]))


def get(id: str) -> Call[Document]:
    return Call(method="GET", path=_at(_possible(id)), read=Document.from_json)


def queries(id: str) -> Call[list[str]]:
    return Call(method="GET", path=_at(_possible(id)), read=queries_from_json)


def documents(
    where: Where | None = None,
    *,
    ids: Iterable[str] | None = None,
    limit: int | None = None,
    after: str | None = None,
    missing_ok: bool = False,
) -> Call[Document]:
    """Answered by a line for each document."""
    if isinstance(ids, str):
        raise InvalidInput(f"expected a list of ids, found the text {ids!r:.60}")
    wanted = None if ids is None else [id for id in ids if not missing_ok or _is_possible(id)]
    given = {"where": where, "ids": wanted, "limit": limit, "after": after, "missing_ok": missing_ok or None}
    asked = {name: value for name, value in given.items() if value is not None}
    if not asked:
        return Call(method="GET", path=DOCUMENTS, read=Document.from_json)
    for id in (*(wanted or ()), *([] if after is None else [after])):
        _possible(id)
    return _asked("/v1/documents/list", asked, Document.from_json)


def in_order(documents: Iterable[Document], ids: Sequence[str]) -> list[Document]:
    """The documents by these ids; UnknownDocument if one was deleted meanwhile."""
    found = {document.id: document for document in documents}
    if missing := [id for id in ids if id not in found]:
        raise UnknownDocument(f"no document {missing[0]!r} in the index; check the id")
    return [found[id] for id in ids]


def with_queries() -> Call[tuple[Document, list[str]]]:
    """Answered by a line for each document."""
    return Call(
        method="GET",
        path="/v1/documents?queries=true",
        read=lambda found: (Document.from_json(found), queries_from_json(found)),
    )


def search(
    text: str,
    k: int = 10,
    where: Where | None = None,
    mode: str = "fused",
    *,
    least: float | None = None,
    passages: int = 1,
) -> Call[list[Hit]]:
    return _search({"query": _readable(text)}, k, where, mode, least, passages, lambda found: _hits(found["hits"]))


def search_many(
    texts: Sequence[str],
    k: int = 10,
    where: Where | None = None,
    mode: str = "fused",
    *,
    least: float | None = None,
    passages: int = 1,
) -> Call[list[list[Hit]]]:
    asked = {"queries": [_readable(text) for text in texts]}
    return _search(
        asked, k, where, mode, least, passages, lambda found: [_hits(one["hits"]) for one in found["results"]]
    )


def info() -> Call[Info]:
    return Call(method="GET", path="/v1/info", read=Info.from_json)


def add(document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Call[Addition]:
    given = as_document(document)
    return _batch(DOCUMENTS, [given], {given.id: queries}, if_version, lambda additions: additions[0])


def add_many(
    batch: Sequence[Document], queries: Mapping[str, Sequence[str]] | None, if_version: int | None, whole: bool
) -> Iterator[Call[list[Addition]]]:
    """Requests of at most PORTION documents, or a single one if nothing may come between them."""
    for portion, asked in _portions(batch, queries, together=whole or if_version is not None):
        yield _batch(DOCUMENTS, portion, asked, if_version, list)


def update(document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Call[Addition]:
    given = as_document(document)
    return _write("PATCH", _at(given.id), _with_queries(given, queries), if_version, Addition.from_json)


def upsert(document: DocumentLike, queries: Sequence[str] = (), *, if_version: int | None = None) -> Call[Addition]:
    given = as_document(document)
    return _write("PUT", _at(given.id), _with_queries(given, queries), if_version, Addition.from_json)


def upsert_many(
    batch: Sequence[Document], queries: Mapping[str, Sequence[str]] | None, if_version: int | None, whole: bool
) -> Iterator[Call[list[Addition]]]:
    """As `add_many`; an id that is twice in the batch may come in two requests, so it is refused here."""
    if len({document.id for document in batch}) < len(batch):
        raise DuplicateDocument("an id is twice in the batch; remove one")
    for portion, asked in _portions(batch, queries, together=whole or if_version is not None):
        yield _batch(f"{DOCUMENTS}/upsert", portion, asked, if_version, list)


def teach(query: str, id: str, *, if_version: int | None = None) -> Call[Addition]:
    return _write("POST", "/v1/teach", {"query": query, "id": _possible(id)}, if_version, Addition.from_json)


def learn(clicks: Iterable[Click] | None, threshold: Threshold, dry_run: bool) -> Iterator[Call[Learned]]:
    """Requests of at most some PAIRS of query and document; those of a query stay together, for its share of clicks.

    None is the server's own log.
    """
    if clicks is None:
        yield _learn(None, threshold, dry_run)
        return
    by_query: dict[str, list[Click]] = {}
    for click in summed(clicks):
        by_query.setdefault(click.query, []).append(click)
    portion: list[Click] = []
    for some in by_query.values():
        if portion and len(portion) + len(some) > PAIRS:
            yield _learn(portion, threshold, dry_run)
            portion = []
        portion += some
    if portion:
        yield _learn(portion, threshold, dry_run)


def gaps(least: float, k: int) -> Call[Gaps]:
    return Call(method="GET", path=f"/v1/gaps?{urlencode({'least': least, 'k': k})}", read=Gaps.from_json)


def _learn(clicks: Sequence[Click] | None, threshold: Threshold, dry_run: bool) -> Call[Learned]:
    body: dict[str, object] = {"least": threshold.clicks, "share": threshold.share, "dry_run": dry_run}
    if clicks is not None:
        body["clicks"] = [
            {"query": _readable(click.query), "id": click.document_id, "count": click.count} for click in clicks
        ]
    return _write("POST", "/v1/learn", body, None, Learned.from_json)


def delete(
    id: str | Iterable[str] | None = None,
    *,
    where: Where | None = None,
    resolve: bool = False,
    if_version: int | None = None,
    progress: Progress | None = None,
) -> Call[int]:
    def read(found: Mapping[str, Any]) -> int:
        deleted = int(found["deleted"])
        if progress is not None:
            progress(deleted, deleted)
        return deleted

    if (id is None) == (where is None):
        raise InvalidInput("delete takes either an id or a filter")
    ids = [id] if isinstance(id, str) else list(id or ())
    chosen = {"where": _plain(where)} if id is None else {"ids": [_possible(one) for one in ids]}
    body = {**chosen, "resolve": resolve}
    return _write("POST", "/v1/documents/delete", body, if_version, read)


def answered(content: bytes | str, read: Callable[[Any], T]) -> T:
    """What an answer says; ServerError if it is not incdsi's, but, say, that of a proxy in between."""
    try:
        return read(json.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError("the answer is not from an incdsi server; check the address") from error


def _search(
    asked: Mapping[str, object],
    k: int,
    where: Where | None,
    mode: str,
    least: float | None,
    passages: int,
    read: Callable[[Any], T],
) -> Call[T]:
    given: dict[str, object] = {"where": where, "least": least, "passages": None if passages == 1 else passages}
    body = {**asked, "k": k, "mode": mode, **{name: value for name, value in given.items() if value is not None}}
    call = _asked("/v1/search", body, read)
    # A field that an older server does not know would be refused; a preference it ignores, and sends all texts.
    return replace(call, headers={**call.headers, "Prefer": "texts=all"})


def _asked(path: str, asked: Mapping[str, object], read: Callable[[Any], T]) -> Call[T]:
    """A question with a body; its filter may have dates, sets and numpy's numbers."""
    body = {name: _plain(value) if name == "where" else value for name, value in asked.items()}
    return Call(method="POST", path=path, body=_dumped(body), headers={"Content-Type": "application/json"}, read=read)


def _portions(
    batch: Sequence[Document], queries: Mapping[str, Sequence[str]] | None, *, together: bool
) -> Iterator[tuple[Sequence[Document], Mapping[str, Sequence[str]]]]:
    asked = _asked_of(batch, queries)
    size = max(1, len(batch)) if together else PORTION
    return ((batch[start : start + size], asked) for start in range(0, len(batch), size))


def _batch(
    path: str,
    documents: Sequence[Document],
    asked: Mapping[str, Sequence[str]],
    if_version: int | None,
    read: Callable[[list[Addition]], T],
) -> Call[T]:
    def read_all(found: Mapping[str, Any]) -> T:
        return read([Addition.from_json(one) for one in found["additions"]])

    body = {"documents": [{"id": one.id, **_with_queries(one, asked.get(one.id, ()))} for one in documents]}
    return _write("POST", path, body, if_version, read_all)


def _asked_of(batch: Sequence[Document], queries: Mapping[str, Sequence[str]] | None) -> dict[str, Sequence[str]]:
    asked = dict(queries or {})
    strangers = asked.keys() - {document.id for document in batch}
    if strangers:
        raise UnknownDocument(f"there are queries for {min(strangers)!r}, which is not among the documents")
    return asked


def _write(method: str, path: str, body: object, if_version: int | None, read: Callable[[Any], T]) -> Call[T]:
    headers = {"Content-Type": "application/json", KEYED: secrets.token_hex(16)}
    if if_version is not None:
        headers["If-Match"] = f'"{if_version}"'
    return Call(method=method, path=path, body=_dumped(body), headers=headers, read=read)


def _at(id: str) -> str:
    # A dot is never encoded by `quote`, and a path of dots means another folder.
    name = quote(utf8(id, f"document {id!r}"), safe="")
    return "/v1/documents/" + (name.replace(".", "%2E") if set(name) == {"."} else name)


def _possible(id: str) -> str:
    """The id of a document that may exist; the server calls any other invalid, where the index knows none."""
    if not _is_possible(id):
        raise UnknownDocument(f"no document {id!r:.80} in the index; check the id")
    return id


def _is_possible(id: object) -> bool:
    return isinstance(id, str) and 0 < len(id) <= LONGEST_ID and id == _readable(id)


def _with_queries(document: Document, texts: Sequence[str]) -> dict[str, Any]:
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        raise InvalidInput(f"document {document.id!r}: queries must be a list of strings, not {texts!r:.80}")
    fields = {**document.to_json(), **queries_to_json(texts)}
    # An empty list is the default, and an older server does not know `taught`.
    return {name: value for name, value in fields.items() if name != "id" and value != []}


def _readable(text: str) -> str:
    """Half of a surrogate pair cannot be sent; the encoder replaces it as well."""
    return text.encode("utf-8", "replace").decode() if isinstance(text, str) else text


def _plain(where: object) -> object:
    """A filter as JSON has it: lists for sets and tuples, ISO text for dates, Python's numbers for numpy's."""
    if isinstance(where, Mapping):
        if not all(isinstance(name, str) for name in where):  # JSON would make texts of them
            raise InvalidInput("field names in a filter must be strings")
        return {name: _plain(value) for name, value in where.items()}
    if isinstance(where, list | tuple | set | frozenset):
        return [_plain(value) for value in where]
    return plain(where)


def _dumped(body: object) -> bytes:
    try:
        text = json.dumps(body, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"this cannot be sent as JSON: {error}") from error
    return utf8(text, "the request")


def _hits(found: Iterable[Mapping[str, Any]]) -> list[Hit]:
    return [
        Hit(
            document_id=hit["document"]["id"],
            score=hit["score"],
            rank=hit["rank"],
            document=Document.from_json(hit["document"]),
            learned=hit["learned"],
            lexical=hit["lexical"],
            nearest=hit.get("nearest"),
            confidence=hit.get("confidence"),
            passages=tuple(map(Passage.from_json, hit.get("passages", ()))),
            snippet=Snippet.from_json(hit["snippet"]) if "snippet" in hit else Snippet(text=""),
        )
        for hit in found
    ]
