"""Opening an index, or making it when it is not there."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from incdsi.cli.progress import waiting

if TYPE_CHECKING:
    from incdsi.engine.settings import Settings
    from incdsi.index import Index


def is_there(path: Path) -> bool:
    """Whether there is an index in that folder."""
    from incdsi.store.files import STORE

    return (path / STORE).is_file()


def open_index(path: Path) -> Index:
    """The index in that folder; IndexNotFound when there is none."""
    from incdsi.index import Index

    return Index.open(path)


def open_or_create(path: Path, encoder: str | None, tuning: bool | None, *, hidden: bool = False) -> Index:
    """The index in that folder, made when it is not there; `tuning` is kept for good when it is given.

    Says what it waits for, unless `hidden`: the encoder of a new index may have to be fetched.
    """
    with waiting("opening the encoder", hidden=hidden):
        return _opened_or_created(path, encoder, tuning)


def _opened_or_created(path: Path, encoder: str | None, tuning: bool | None) -> Index:
    from incdsi.index import Index

    if not is_there(path):
        return Index.create(path, encoder, tuning=tuning is not False)
    index = Index.open(path, encoder)
    if tuning is not None:
        try:
            index.set_tuning(tuning)
        except BaseException:
            index.close()
            raise
    return index


def stored_settings(path: Path) -> Settings:
    """What the index remembers about itself, without opening its model."""
    from incdsi.engine.settings import KEY, Settings
    from incdsi.store import Store

    with Store.open(path, writer=False) as store:
        return Settings.from_json(store.setting(KEY))


def size_of(folder: Path) -> int:
    """Bytes on the disk."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
