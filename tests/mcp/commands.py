"""`incdsi mcp` as agents start it, and listening on a port."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "incdsi.cli", "mcp", *map(str, arguments)]


@contextmanager
def listening(shop: Path) -> Iterator[str]:
    """The address of a server that may write."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = command("--index", shop, "--write", "--port", port, "--json")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = str(json.loads(process.stdout.readline())["address"])
            for _ in range(400):
                with socket.socket() as tried:
                    if tried.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()
