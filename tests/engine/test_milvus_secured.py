"""An index on a server that wants a key and TLS: both come from the environment, and what is missing is one sentence.

`make test-milvus` starts such a server for these alone.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from incdsi.engine.addresses import TLS, TOKEN, parse
from incdsi.engine.milvus.connection import Connection
from incdsi.errors import InvalidInput, NotAllowed, ServerUnavailable
from incdsi.index import Index
from tests.milvus_server import CERTIFICATE, KEY, SECURED, certify

sys.path.append(str(Path(__file__).parents[1] / "index"))

from index_samples import TOY, doc

pytestmark = [
    pytest.mark.milvus,
    pytest.mark.skipif(SECURED not in os.environ, reason="no secured Milvus server; `make test-milvus` starts one"),
]


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(TOKEN, KEY)
    monkeypatch.setenv(TLS, os.environ[CERTIFICATE])
    monkeypatch.setattr("incdsi.engine.milvus.connection.CONNECTS_IN", 3.0)
    return f"milvus://{os.environ[SECURED]}/secured"


def test_with_key_and_certificate_everything_works(address: str) -> None:
    with Index.create(address, TOY) as index:
        index.add(doc("a"), ["where is a"])
        index.add(doc("b"))
        assert index.search("where is a", 1)[0].document_id == "a"
        index.delete("b")
    with Index.open(address, TOY) as again:
        assert [one.id for one in again.documents()] == ["a"]


@pytest.mark.parametrize(
    ("key", "says"), [("", f"wants a key; put it in {TOKEN}"), ("root:wrong", f"another key than the one in {TOKEN}")]
)
def test_without_a_key_or_with_a_wrong_one_it_is_refused(
    address: str, monkeypatch: pytest.MonkeyPatch, key: str, says: str
) -> None:
    monkeypatch.setenv(TOKEN, key)
    with pytest.raises(NotAllowed, match=says) as refused:
        Index.open(address, TOY)
    assert "wrong" not in str(refused.value)


def test_a_user_without_rights_is_refused(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection(parse(address))
    connection._client.create_user("nobody", "nobody9")
    connection.close()
    monkeypatch.setenv(TOKEN, "nobody:nobody9")
    with pytest.raises(NotAllowed, match="user:password of one who may write"):
        Index.create(f"{address}_of_nobody", TOY)


@pytest.mark.parametrize("tls", ["", "other"])
def test_without_tls_or_with_another_certificate_nobody_answers(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tls: str
) -> None:
    if tls:
        certify(tmp_path / "other.pem", tmp_path / "other.key")
    monkeypatch.setenv(TLS, tls and str(tmp_path / "other.pem"))
    with pytest.raises(ServerUnavailable, match=f"no Milvus answers at .* {TLS}|no TLS with Milvus"):
        Index.open(address, TOY)


def test_a_certificate_that_is_no_file_is_one_sentence(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TLS, "/nowhere/server.pem")
    with pytest.raises(InvalidInput, match=f"{TLS} names no file: /nowhere/server.pem"):
        Index.open(address, TOY)
