"""`incdsi serve` in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from tests.engines import FOLDER, lite, places, server

COMMAND = [sys.executable, "-c", "from incdsi.cli import main; main()", "serve"]


@pytest.mark.parametrize("kind", [FOLDER, lite(heavy=False), server(heavy=False)])
def test_serving_until_ctrl_c(tmp_path: Path, exported: OnnxEncoder, kind: str) -> None:
    for place in places(kind, tmp_path):
        _serve(str(place("fresh shop")), exported.folder, tmp_path)


def _serve(index: str, encoder: Path, home: Path) -> None:
    arguments = ["--index", index, "--encoder", str(encoder), "--port", "0", "--json"]
    environment = {**os.environ, "INCDSI_QUEUE": "7", "XDG_CACHE_HOME": str(home)}
    with subprocess.Popen(
        [*COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        with httpx2.Client(base_url=said["address"], timeout=30) as http:
            assert http.post("/v1/documents", json={"id": "a", "text": "hiking boots"}).status_code == 201
            assert http.post("/v1/search", json={"query": "boots"}).json()["hits"][0]["document"]["id"] == "a"
            assert http.post("/v1/documents", json={"id": "b", "text": "a tent for snow"}).status_code == 201
            assert http.delete("/v1/documents/b").status_code == 200
            assert http.get("/v1/documents/b").status_code == 404
            assert http.get("/v1/info").json()["limits"]["queue"] == 7
        process.send_signal(signal.SIGINT)
        _, log = process.communicate(timeout=60)
    assert process.returncode == 0, log
    assert said["keys"] is False
    assert "Traceback" not in log


def test_another_address_without_a_key_is_one_sentence(tmp_path: Path) -> None:
    arguments = ["--index", str(tmp_path / "shop"), "--host", "0.0.0.0"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("INCDSI_")}
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.strip().startswith("listening on 0.0.0.0 requires a key")
    assert not (tmp_path / "shop").exists()
