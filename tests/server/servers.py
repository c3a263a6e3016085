"""A real server in a thread, or in a process of its own, over the toy encoder."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2

from incdsi.index import Index
from incdsi.server.run import Server, address, bind
from incdsi.server.settings import ServerSettings
from incdsi.server.shelf import Shelf
from tests.index.index_samples import TOY

KEY, READ_KEY = "a-key-of-enough-letters", "another-one-for-reading"
ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def running(index: Index, folder: Path, **given: Any) -> Iterator[str]:
    """The address of a server of this index, stopped as SIGTERM would when the block ends."""
    with serving(index, ServerSettings(index=folder, port=0, **given)) as url:
        yield url


@contextlib.contextmanager
def several(folder: Path, **given: Any) -> Iterator[str]:
    """The address of a server of every index in that folder, all under the toy encoder."""
    settings = ServerSettings(indexes=folder, port=0, **given)
    with Shelf(settings, lambda path: Index.open(path, TOY)) as shelf, serving(shelf, settings) as url:
        yield url


@contextlib.contextmanager
def serving(served: Index | Shelf, settings: ServerSettings) -> Iterator[str]:
    ready = threading.Event()
    with contextlib.closing(bind(settings)) as bound:
        server = Server(served, settings, ready.set)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            assert ready.wait(20)
            yield address(bound)
        finally:
            server.should_exit = True
            thread.join(60)
            assert not thread.is_alive()


class Child:
    """A server process; `url` once it listens."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        command = [sys.executable, "-m", "tests.server.serving_child", str(folder), json.dumps(settings)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=ROOT
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().strip()
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.url.startswith("http://"), self.ended()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def ended(self) -> str:
        """Waits until it has ended; what it logged."""
        self.process.wait(60)
        self._reader.join(10)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return "".join(self.log)

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
        self.ended()


def make(folder: Path) -> Index:
    """An empty index under the toy encoder that never tunes itself."""
    return Index.create(folder, TOY, tuning=False)


def raw(url: str, content: bytes, seconds: float = 10.0) -> bytes:
    """What comes back for these bytes until the server closes or is silent."""
    host, port = httpx2.URL(url).host, httpx2.URL(url).port
    with socket.create_connection((host, port), timeout=seconds) as connection:
        connection.sendall(content)
        got = b""
        with contextlib.suppress(TimeoutError, ConnectionError):
            while piece := connection.recv(65536):
                got += piece
    return got
