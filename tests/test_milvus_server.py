"""Whoever supervises the Milvus server of tests and benchmarks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.milvus_server import MilvusServer


def test_a_start_that_fails_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = []

    def start(server: MilvusServer) -> None:
        starts.append(len(starts))
        command = ["true"] if len(starts) == 1 else ["sleep", "60"]
        server._process = subprocess.Popen(command)
        if len(starts) == 1:
            server._process.wait()
            raise RuntimeError("the server ended at once")

    monkeypatch.setattr(MilvusServer, "start", start)
    server = MilvusServer(tmp_path)
    assert not server.revive()  # it was never started
    server._process = subprocess.Popen(["true"])
    server._process.wait()
    assert [server.revive(), server.revive(), server.revive()] == [True, True, False]
    server.crash()
    assert server.revive()
    server.kill()
    assert starts == [0, 1, 2]
