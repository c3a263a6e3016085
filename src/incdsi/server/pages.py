"""The web page: files of this package, by name."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib import resources

from fastapi import APIRouter, Request
from fastapi.responses import Response

from incdsi.server.problems import no_such_path

router = APIRouter(include_in_schema=False)
TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "webmanifest": "application/manifest+json",
    "txt": "text/plain; charset=utf-8",
    "woff2": "font/woff2",
}


@dataclass(frozen=True)
class File:
    """A file's content, media type and ETag."""

    content: bytes
    type: str
    etag: str


@cache
def files() -> dict[str, File]:
    """The page's files by name, read once."""
    folder = resources.files("incdsi.server").joinpath("page")
    found = [one for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []
    read = {one.name: one.read_bytes() for one in found if _ending(one.name) in TYPES}
    return {
        name: File(content, TYPES[_ending(name)], f'"{hashlib.sha256(content).hexdigest()[:16]}"')
        for name, content in read.items()
    }


@router.get("/")
async def home(request: Request) -> Response:
    return _given(request, getattr(request.app.state, "front_page", "index.html"))


@router.get("/docs")
async def api(request: Request) -> Response:
    return _given(request, "docs.html")


@router.get("/favicon.ico")
async def favicon(request: Request) -> Response:
    return _given(request, "icon.svg")


@router.get("/page/{name}")
async def file(request: Request, name: str) -> Response:
    return _given(request, name)


def _given(request: Request, name: str) -> Response:
    found = files().get(name)
    if found is None:
        raise no_such_path(404, None)
    headers = {"ETag": found.etag, "Cache-Control": "no-cache"}
    if request.headers.get("if-none-match") == found.etag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, headers=headers, media_type=found.type)


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower()
