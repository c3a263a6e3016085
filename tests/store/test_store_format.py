"""Old formats open, newer ones are refused with both numbers."""

from __future__ import annotations

import base64
import gzip
import json
import runpy
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
from store_samples import contents, sample

from incdsi.documents import Document
from incdsi.errors import UnsupportedFormat
from incdsi.filters import parse
from incdsi.records import Record
from incdsi.store import Store, schema
from incdsi.store import store as store_module

GOLDEN = Path(__file__).parent / "golden"
plain = runpy.run_path(str(GOLDEN / "make.py"))["plain"]


def unpack(version: int, folder: Path) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads((GOLDEN / f"format-{version}.json").read_text())
    folder.mkdir()
    (folder / "store.db").write_bytes(gzip.decompress((GOLDEN / f"format-{version}.db.gz").read_bytes()))
    (folder / "base.1.bin").write_bytes(base64.b64decode(expected.pop("base.1.bin")))
    return expected


@pytest.mark.parametrize("version", range(1, schema.format_version() + 1))
def test_every_format_ever_written_opens_to_what_it_held(tmp_path: Path, version: int) -> None:
    expected = unpack(version, tmp_path / "shop")
    with Store.open(tmp_path / "shop", writer=True) as store:
        assert plain(store) == expected
        assert store.verify() == []
        document = Document(id="later", text="later")
        with store.transaction() as tx:
            row = tx.insert(Record(document=document, vector=np.ones(2, np.float32), anchor=np.ones(2, np.float32)))
        assert (row, store.get("later").sequence) == (4, expected["version"] + 1)


def test_the_schema_of_a_written_format_never_changes(tmp_path: Path, store: Store) -> None:
    unpack(schema.format_version(), tmp_path / "golden")

    def tables(folder: Path) -> Any:
        connection = apsw.Connection(str(folder / "store.db"))
        try:
            return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()
        finally:
            connection.close()

    assert tables(tmp_path / "golden") == tables(store.path)


def test_a_newer_format_is_refused_with_both_numbers(store: Store) -> None:
    store.close()
    connection = apsw.Connection(str(store.path / "store.db"))
    connection.pragma("user_version", 7)
    connection.close()
    for writer in (False, True):
        with pytest.raises(
            UnsupportedFormat, match=f"has format 7, and this incdsi reads up to {schema.format_version()}; upgrade"
        ):
            Store.open(store.path, writer=writer)


NOW = schema.format_version()
STEPS = (
    schema.Migration(
        version=NOW + 1, name="shelf", script="ALTER TABLE documents ADD COLUMN shelf TEXT DEFAULT 'top';"
    ),
    schema.Migration(version=NOW + 2, name="shelf index", script="CREATE INDEX by_shelf ON documents (shelf);"),
)


def install(monkeypatch: pytest.MonkeyPatch, *steps: schema.Migration) -> None:
    migrations = (*schema.MIGRATIONS, *steps)
    monkeypatch.setattr("incdsi.store.checks.MIGRATIONS", migrations)
    monkeypatch.setattr(store_module, "format_version", lambda: schema.format_version(migrations))
    monkeypatch.setattr(store_module, "readable", lambda found: schema.readable(found, migrations))
    monkeypatch.setattr(store_module, "check_format", lambda c, f: schema.check_format(c, f, migrations))
    monkeypatch.setattr(store_module, "migrate", lambda c: schema.migrate(c, migrations))


def test_an_older_store_is_migrated_in_order_by_its_writer_and_says_so(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    before = contents(store)
    store.backup(tmp_path / "backup")
    store.close()
    install(monkeypatch, *STEPS)
    with pytest.raises(UnsupportedFormat, match=f"has format {NOW}, older than {NOW + 2}; open it once for writing"):
        Store.open(store.path, writer=False)
    for folder in (store.path, tmp_path / "restored"):
        if not folder.exists():
            Store.restore(tmp_path / "backup", folder)
        with Store.open(folder, writer=True) as migrated:
            assert contents(migrated) == before
            assert migrated.verify() == []
        connection = apsw.Connection(str(folder / "store.db"))
        assert connection.execute("SELECT shelf FROM documents").get == "top"
        recorded = connection.execute("SELECT version, name FROM migrations ORDER BY version").fetchall()
        assert recorded[-3:] == [(NOW, schema.MIGRATIONS[-1].name), (NOW + 1, "shelf"), (NOW + 2, "shelf index")]
        connection.close()
    Store.open(store.path, writer=True).close()


def test_a_format_without_a_step_that_reading_does_not_need_is_read_as_it_is(tmp_path: Path) -> None:
    expected = unpack(1, tmp_path / "shop")
    before = (tmp_path / "shop" / "store.db").read_bytes()
    with Store.open(tmp_path / "shop", writer=False) as store:
        assert plain(store) == expected
        assert store.verify() == []
        assert store.filter_rows(parse({"lang": {"contains": "f"}})).tolist() == [3]
    assert (tmp_path / "shop" / "store.db").read_bytes() == before


def test_a_migration_that_fails_leaves_the_old_store(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.transaction() as tx:
        tx.insert(sample("a"))
    before = contents(store)
    store.close()
    with monkeypatch.context() as patched:
        install(patched, STEPS[0], schema.Migration(version=NOW + 2, name="broken", script="CREATE TABLE links (x)"))
        with pytest.raises(Exception, match="links"):
            Store.open(store.path, writer=True)
    with Store.open(store.path, writer=True) as old:
        assert contents(old) == before
        assert old.verify() == []
