"""Every verb as one HTTP request and the way to read its answer; sending is left to the clients."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from incdsi.documents import Addition, Document, Hit, Taught
from incdsi.errors import InvalidInput, ServerError
from incdsi.filters import Where

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
PORTION = 256  # documents sent together


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T_co]):
    """A request and how to read what comes back."""

    method: str
    path: str
    read: Callable[[Any], T_co]
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


def search(text: object, k: object, where: Where | None, mode: object) -> Call[list[Hit]]:
    readable = text.encode("utf-8", "replace").decode() if isinstance(text, str) else text
    asked = {"query": readable, "k": k, "mode": mode} | ({} if where is None else {"where": _plain(where)})
    return Call(
        method="POST",
        path="/v1/search",
        body=_dumped(asked),
        headers={"Content-Type": "application/json"},
        read=lambda found: [_hit(hit) for hit in found["hits"]],
    )


def search_many(texts: Sequence[str], k: int, where: Where | None, mode: str) -> Call[list[list[Hit]]]:
    asked = {"queries": list(texts), "k": k, "mode": mode} | ({} if where is None else {"where": _plain(where)})
    return Call(
        method="POST",
        path="/v1/search",
        body=_dumped(asked),
        headers={"Content-Type": "application/json"},
        read=lambda found: [[_hit(hit) for hit in one["hits"]] for one in found["results"]],
    )


def get(id: str) -> Call[Document]:
    return Call(method="GET", path=_at(id), read=document)


def queries(id: str) -> Call[list[str]]:
    return Call(method="GET", path=_at(id), read=_asked)


def count() -> Call[int]:
    return Call(method="GET", path="/v1/version", read=lambda found: int(found["documents"]))


def version() -> Call[int]:
    return Call(method="GET", path="/v1/version", read=lambda found: int(found["version"]))


def info(read: Callable[[Mapping[str, Any]], T]) -> Call[T]:
    return Call(method="GET", path="/v1/info", read=read)


def add_many(
    documents: Sequence[Document], asked: Mapping[str, Sequence[str]], if_version: int | None
) -> Call[list[Addition]]:
    body = {"documents": [{"id": one.id, **_fields(one), **_questions(asked, one.id)} for one in documents]}
    return _write(
        "POST", "/v1/documents", body, if_version, lambda found: [_addition(one) for one in found["additions"]]
    )


def update(document: Document, asked: Sequence[str], if_version: int | None) -> Call[Addition]:
    body = {**_fields(document), **_questions({document.id: asked}, document.id)}
    return _write("PATCH", _at(document.id), body, if_version, _addition)


def upsert(document: Document, asked: Sequence[str], if_version: int | None) -> Call[Addition]:
    body = {**_fields(document), **_questions({document.id: asked}, document.id)}
    return _write("PUT", _at(document.id), body, if_version, _addition)


def teach(query: object, id: str, if_version: int | None) -> Call[Addition]:
    return _write("POST", "/v1/teach", {"query": query, "id": id}, if_version, _addition)


def delete(id: str | Iterable[str] | None, where: Where | None, resolve: bool, if_version: int | None) -> Call[int]:
    if (id is None) == (where is None):
        raise InvalidInput("expected either an id or a filter to delete by, found both or neither")
    if id is not None:
        chosen: dict[str, object] = {"ids": [id] if isinstance(id, str) else list(id)}
    else:
        chosen = {"where": _plain(where)}
    body = {**chosen, "resolve": resolve}
    return _write("POST", "/v1/documents/delete", body, if_version, lambda found: int(found["deleted"]))


def portions(documents: Iterable[Document], asked: Mapping[str, Sequence[str]]) -> list[list[Document]]:
    """The documents as they are sent together; refuses queries of somebody else."""
    batch = list(documents)
    strangers = asked.keys() - {document.id for document in batch}
    if strangers:
        raise InvalidInput(f"expected queries of documents in the batch, found some for {min(strangers)!r}")
    return [batch[start : start + PORTION] for start in range(0, len(batch), PORTION)]


def line(content: str) -> Document:
    """A document from a line of JSON."""
    return answered(content.encode(), document)


def answered(content: bytes, read: Callable[[Any], T]) -> T:
    """What an answer says; ServerError when it is not incdsi's, as that of a proxy in between."""
    try:
        return read(json.loads(content))
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError("expected an answer of incdsi, found something else; check the address") from error


def document(found: Mapping[str, Any]) -> Document:
    """A document from its fields."""
    return Document(id=found["id"], title=found["title"], text=found["text"], metadata=found["metadata"])


def _write(method: str, path: str, body: object, if_version: int | None, read: Callable[[Any], T]) -> Call[T]:
    headers = {"Content-Type": "application/json", "Idempotency-Key": secrets.token_hex(16)}
    if if_version is not None:
        headers["If-Match"] = f'"{if_version}"'
    return Call(method=method, path=path, body=_dumped(body), headers=headers, read=read)


def _at(id: str) -> str:
    # A dot is never encoded by `quote`, and a path of dots means another folder.
    name = quote(id, safe="", errors="surrogatepass")
    return "/v1/documents/" + (name.replace(".", "%2E") if set(name) == {"."} else name)


def _fields(document: Document) -> dict[str, Any]:
    return {"title": document.title, "text": document.text, "metadata": dict(document.metadata)}


def _questions(asked: Mapping[str, Sequence[str]], id: str) -> dict[str, list[str]]:
    texts = asked.get(id, ())
    if not isinstance(texts, Sequence) or isinstance(texts, str):
        raise InvalidInput(f"document {id!r}: expected its queries as a list of texts, found {texts!r:.80}")
    taught: list[str] = [text for text in texts if isinstance(text, Taught)]
    return {"queries": list(texts)} | ({"taught": taught} if taught else {})  # an older server knows none


def _asked(found: Mapping[str, Any]) -> list[str]:
    taught = set(found.get("taught", ()))
    return [Taught(text) if text in taught else text for text in found["queries"]]


def _plain(where: object) -> object:
    """Lists for the sets and tuples that a filter may hold."""
    if isinstance(where, Mapping):
        return {name: _plain(value) for name, value in where.items()}
    if isinstance(where, list | tuple | set | frozenset):
        return [_plain(value) for value in where]
    return where


def _dumped(body: object) -> bytes:
    try:
        return json.dumps(body, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"expected plain values that JSON knows, found something else ({error})") from error


def _addition(found: Mapping[str, Any]) -> Addition:
    return Addition(
        document_id=found["id"],
        status=found["status"],
        margin=math.inf if found["margin"] is None else found["margin"],
        conflicts=tuple(found["conflicts"]),
        seconds=found["seconds"],
    )


def _hit(found: Mapping[str, Any]) -> Hit:
    return Hit(
        document_id=found["document"]["id"],
        score=found["score"],
        rank=found["rank"],
        document=document(found["document"]),
        learned=found["learned"],
        lexical=found["lexical"],
    )
