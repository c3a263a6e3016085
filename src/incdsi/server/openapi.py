"""The OpenAPI document: what FastAPI derives, plus the bodies the routes read and the errors they raise themselves."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from incdsi.server import lesson_schemas, schemas
from incdsi.server.problems import MEDIA_TYPE

REF = "#/components/schemas/{model}"
REQUESTS: tuple[type[BaseModel], ...] = (
    schemas.DocumentIn,
    schemas.DocumentsIn,
    schemas.DocumentBody,
    schemas.DocumentPatch,
    schemas.DeleteRequest,
    schemas.ListRequest,
    schemas.CountRequest,
    lesson_schemas.ClickIn,
    lesson_schemas.LearnRequest,
    schemas.SearchRequest,
    schemas.TeachRequest,
    schemas.Problem,
)
EXAMPLE = {"id": "boots-18", "title": "Boots", "text": "Waterproof boots.", "queries": ["dry feet"]}
WRITE_HEADERS = [
    {
        "name": "If-Match",
        "in": "header",
        "schema": {"type": "string", "pattern": r'^("[0-9]{1,18}"|\*)$'},
        "description": "The version the index must be at.",
        "example": '"45"',
    },
    {
        "name": "Idempotency-Key",
        "in": "header",
        "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
        "description": "Repeating a request with its key repeats the first answer.",
        "example": "5f0c",
    },
]

CREATE_ONLY = {
    "name": "If-None-Match",
    "in": "header",
    "schema": {"type": "string", "pattern": r"^\*$"},
    "description": "Create a document, never replace one.",
    "example": "*",
}

NAME = {
    "name": "index",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "The name of the index.",
    "example": "shop",
}


def body(*models: type[BaseModel], example: Any, stream: bool = False) -> dict[str, Any]:
    """`openapi_extra` for a route that reads one of these models."""
    refs = [{"$ref": REF.format(model=model.__name__)} for model in models]
    content: dict[str, Any] = {
        "application/json": {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}, "example": example}
    }
    if stream:
        content["application/x-ndjson"] = {
            "schema": {"type": "string", "description": "One document per line."},
            "example": '{"id": "boots-18", "text": "Waterproof boots."}\n',
        }
    return {"requestBody": {"required": True, "content": content}}


def writing(extra: dict[str, Any], *headers: dict[str, Any]) -> dict[str, Any]:
    """`openapi_extra` for a route that writes, with these extra headers."""
    return {**extra, "parameters": [*WRITE_HEADERS, *headers]}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """`responses` for these errors and those of every route."""
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
    every = (400, 401, 403, 429, 503, *statuses)
    return {status: {"description": f"A problem ({status}).", "content": content} for status in sorted(set(every))}


def describe_several(app: FastAPI, one: FastAPI) -> dict[str, Any]:
    """The whole document of a server of several indexes: its own paths, and those of each index under its name."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    document, each = describe(app), describe(one)
    for path, methods in each["paths"].items():
        for operation in methods.values():
            operation["operationId"] = f"index_{operation['operationId']}"
            operation["parameters"] = [NAME, *operation.get("parameters", [])]
        document["paths"][f"/{{index}}{path}"] = methods
    document["components"]["schemas"].update(each["components"]["schemas"])
    return document


def describe(app: FastAPI) -> dict[str, Any]:
    """The whole document, with request schemas beside the response schemas."""
    if app.openapi_schema is None:
        document = get_openapi(
            title=app.title,
            version=app.version,
            description=app.description,
            routes=app.routes,
            openapi_version="3.1.0",
        )
        _, found = models_json_schema([(model, "validation") for model in REQUESTS], ref_template=REF)
        document["components"].setdefault("schemas", {}).update(found["$defs"])
        for name in ("HTTPValidationError", "ValidationError"):
            document["components"]["schemas"].pop(name, None)
        document["components"]["securitySchemes"] = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        document["security"] = [{}, {"bearer": []}, {"key": []}]
        app.openapi_schema = document
    return app.openapi_schema
