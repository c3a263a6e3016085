"""The tools as an agent meets them: a real client, the real command, over stdin and stdout and over HTTP."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from incdsi.index import Index
from incdsi.mcp.server import LONGEST, make_server
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from tests.index.index_samples import docs
from tests.mcp.commands import command, listening
from tests.server.servers import KEY, READ_KEY, make, running

Act = Callable[[Client], Coroutine[Any, Any, None]]
READING, WRITING = ["search", "get"], ["search", "get", "add", "teach", "delete"]


def use(server: Any, act: Act) -> None:
    async def go() -> None:
        async with Client(server) as client:
            await act(client)

    asyncio.run(asyncio.wait_for(go(), 120))


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


async def call(client: Client, name: str, **arguments: Any) -> Any:
    answer = await client.call_tool(name, arguments)
    assert not answer.is_error, answer.content
    found = answer.structured_content
    return found["result"] if found is not None and set(found) == {"result"} else found


async def refused(client: Client, name: str, **arguments: Any) -> str:
    answer = await client.call_tool(name, arguments)
    assert answer.is_error
    return str(answer.content[0].text)


async def all_tools(client: Client) -> None:
    """Each of the five, on an index with d0 to d4."""
    assert await names(client) == WRITING
    assert (await call(client, "add", id="boots", text="Waterproof boots.", queries=["dry feet"]))["id"] == "boots"
    assert (await call(client, "search", query="dry feet", k=1))[0]["id"] == "boots"
    assert (await call(client, "teach", query="gift for dad", id="d3"))["status"]
    assert (await call(client, "search", query="gift for dad"))[0]["id"] == "d3"
    assert (await call(client, "get", id="d3"))["taught"] == ["gift for dad"]
    filtered = await call(client, "search", query="boots", k=9, where={"lang": "de"})
    assert {one["metadata"]["lang"] for one in filtered} == {"de"}
    assert await call(client, "delete", id="boots") == "deleted boots"
    assert "no document 'boots'" in await refused(client, "get", id="boots")


@pytest.fixture
def shop(tmp_path: Path, exported: OnnxEncoder) -> Path:
    with Index.create(tmp_path / "shop", exported, tuning=False) as index:
        index.add_many(docs(5))
    return tmp_path / "shop"


def test_it_only_reads_unless_it_is_told_otherwise(tmp_path: Path) -> None:
    async def act(client: Client) -> None:
        assert await names(client) == READING
        assert all(tool.annotations.read_only_hint for tool in (await client.list_tools()).tools)
        assert await refused(client, "delete", id="d0")
        assert len(index) == 5

    with make(tmp_path / "shop") as index:
        index.add_many(docs(5))
        use(make_server(index), act)


def test_what_cannot_be_done_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    async def act(client: Client) -> None:
        assert "update or upsert it instead" in await refused(client, "add", id="d0", text="x")
        assert "no document 'nobody'" in await refused(client, "teach", query="x", id="nobody")
        assert "near" in await refused(client, "search", query="x", where={"a": {"near": 1}})
        assert await refused(client, "search", query="x", k=0)
        assert await refused(client, "search")
        assert "at least one character" in await refused(client, "search", query="")

    with make(tmp_path / "shop") as index:
        index.add_many(docs(5))
        use(make_server(index, write=True), act)


def test_a_long_text_is_cut_in_hits_and_whole_in_get(tmp_path: Path) -> None:
    async def act(client: Client) -> None:
        (hit,) = await call(client, "search", query="boots")
        assert (len(hit["text"]), hit["cut"]) == (LONGEST, True)
        assert len((await call(client, "get", id="long"))["text"]) == 6 * LONGEST

    with make(tmp_path / "shop") as index:
        index.add({"id": "long", "text": "boots " * LONGEST})
        use(make_server(index), act)


def test_the_command_speaks_over_stdin_and_stdout(shop: Path) -> None:
    name, *arguments = command("--index", shop, "--write")
    use(StdioServerParameters(command=name, args=arguments, env=dict(os.environ)), all_tools)
    with Index.open(shop) as index:
        assert index.queries("d3") == ["gift for dad"]


def test_the_command_works_on_a_server_with_its_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def only_reads(client: Client) -> None:
        assert await call(client, "search", query="boots")
        assert "read-only" in await refused(client, "teach", query="x", id="d0")

    with make(tmp_path / "shop") as index, running(index, tmp_path / "shop", key=KEY, read_key=READ_KEY) as url:
        index.add_many(docs(5))
        name, *arguments = command("--index", url, "--write")
        for key, act in ((KEY, all_tools), (READ_KEY, only_reads)):
            use(StdioServerParameters(command=name, args=arguments, env={**os.environ, "INCDSI_KEY": key}), act)


def test_the_command_speaks_over_http(shop: Path) -> None:
    with listening(shop) as address:
        use(address, all_tools)


def test_an_index_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    done = subprocess.run(command("--index", tmp_path / "nowhere"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no index in ")
    assert len(done.stderr.splitlines()) == 1
