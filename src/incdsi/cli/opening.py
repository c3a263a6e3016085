"""Opening an index, in a folder or behind a server, or creating it if missing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from incdsi.cli.options import is_address
from incdsi.cli.progress import waiting
from incdsi.engine.addresses import milvus_address
from incdsi.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from incdsi.engine.settings import Settings
    from incdsi.index import Index
    from incdsi.search_index import SearchIndex

TOGETHER = 256  # ids looked up in one request


def is_there(place: str | Path) -> bool:
    """Whether there is an index in that folder or on that Milvus server; behind an address there always is."""
    from incdsi.store.files import STORE

    if address := milvus_address(place):
        from incdsi.index.making import milvus

        return milvus().is_there(address)
    return is_address(place) or (Path(place) / STORE).is_file()


def open_index(place: str) -> SearchIndex:
    """The index in that folder or behind that address; IndexNotFound when there is none."""
    from incdsi.index import Index

    if is_address(place):
        _require_answer(place)
    return Index.open(place)


def open_folder(path: Path) -> Index:
    """The index in that folder, for what only a folder can do."""
    from incdsi.index import Index

    return Index.open(path)


def open_or_create(
    place: str | Path,
    encoder: str | None = None,
    tuning: bool | None = None,
    generator: str | None = None,
    *,
    language: str | None = None,
    hidden: bool = False,
) -> SearchIndex:
    """The index there, made when it is not; `tuning` and `generator` are kept for good when they are given.

    Says what it waits for, unless `hidden`: the encoder of a new index may have to be fetched.
    """
    if is_address(place):
        if any(one is not None for one in (encoder, tuning, generator, language)):
            raise InvalidInput(
                "a server has its own encoder, tuning, generator and language; "
                "leave out --encoder, --tuning, --generator and --language"
            )
        return open_index(str(place))
    with waiting("opening the encoder", hidden=hidden):
        return _opened_or_created(Path(place), encoder, tuning, generator, language)


def known(index: SearchIndex, ids: Iterable[str]) -> set[str]:
    """Which of these are ids of documents in the index."""
    wanted = list(ids)
    pieces = (wanted[start : start + TOGETHER] for start in range(0, len(wanted), TOGETHER))
    return {document.id for piece in pieces for document in index.documents(ids=piece, missing_ok=True)}


def _require_answer(url: str) -> None:
    """Refuses a server that is away, or takes no key of ours, before it is given any work."""
    from incdsi.client import RemoteIndex

    with RemoteIndex(url, patience=0) as index:
        try:
            _ = index.version
        except NotFound as error:
            if "several indexes" in str(error):
                raise InvalidInput(
                    f"the server at {url} has several indexes; name one: {url.rstrip('/')}/NAME"
                ) from None
            raise InvalidInput(f"no incdsi server at {url}; an address looks like http://127.0.0.1:7799") from None


def _opened_or_created(
    path: Path, encoder: str | None, tuning: bool | None, generator: str | None, language: str | None
) -> Index:
    from incdsi.index import Index
    from incdsi.text.generators import named

    writer = None if generator is None else named(generator)
    if not is_there(path):
        return Index.create(path, encoder, generator=writer, tuning=tuning is not False, language=language or "english")
    index = Index.open(path, encoder, generator=writer, language=language)
    if tuning is not None:
        try:
            index.set_tuning(tuning)
        except BaseException:
            index.close()
            raise
    return index


def stored_settings(path: Path) -> Settings:
    """What the index remembers about itself, without opening its model or reading its documents."""
    from incdsi.engine.local.models import settings_in
    from incdsi.index.making import milvus

    address = milvus_address(path)
    return milvus().settings_at(address) if address else settings_in(path)


def kept_encoder(path: Path) -> Path | None:
    """The folder of the encoder that is kept for an index: in its own, or by this client for one on Milvus."""
    from incdsi.engine.milvus.encoders import kept_in

    name, home = stored_settings(path).model, kept_in() if milvus_address(path) else path
    return home / name if name is not None and (home / name).is_dir() else None


def size_of(place: str | Path) -> int | None:
    """Bytes on the disk of an index in a folder; None for one elsewhere."""
    if is_address(place) or milvus_address(place):
        return None
    return sum(file.stat().st_size for file in Path(place).rglob("*") if file.is_file())
