"""Every example of docs/CLI.md runs as it stands, each in a folder of its own that has what it speaks of."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from incdsi.text.encoders.onnx_encoder import OnnxEncoder

pytestmark = pytest.mark.slow  # a process for each example

PAGE = (Path(__file__).parents[2] / "docs" / "CLI.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
EXAMPLES = [line for block in BLOCKS for line in block.splitlines()]
SERVER = "http://127.0.0.1:7799"
ELSEWHERE = {
    "t5:": "a model that writes questions: tests/text/generators/test_seq2seq.py",
    "incdsi model": "weights of a package or the hub: tests/cli/test_encoders.py",
    "milvus://": "a Milvus server: tests/engine/test_milvus.py",
    "incdsi repro": "hours: tests/lab/test_repro.py",
    "incdsi train": "torch: tests/cli/test_learning.py",
}
BEFORE = {
    "incdsi update docs.jsonl": "incdsi add docs.jsonl --index shop",
    "incdsi tune --index shop": "incdsi add asked.jsonl --index shop",
    "incdsi restore": "incdsi backup backups/monday --index shop",
}
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


FILES = {
    "docs.jsonl": lines(
        {"id": "boots-19", "title": "Boots", "text": "leather boots for a long way", "lang": "en", "year": 2011},
        {"id": "tent-4", "text": "stays up in any wind"},
    ),
    "docs/stove.md": "# Stove\nboils water in a minute\n",
    "products.csv": "sku,name,description\nlamp-1,Lamp,light for a night on the mountain\n",
    "log.jsonl": lines({"query": "hot water", "id": "stove.md"}),
    "clicks.jsonl": lines(*({"query": "dry feet", "id": "boots-17"} for _ in range(3))),
    "clicks.csv": "query,id,count\ndry feet,boots-17,9\n",
    "asked.jsonl": lines(
        *(
            {"id": f"rope-{n}", "text": f"a rope of {n} metres", "queries": [f"rope {n} {m}" for m in "abc"]}
            for n in range(9)
        )
    ),
    "queries.jsonl": lines({"query": "lamp"}, {"query": "boots"}),
    "queries.txt": "boots\nhow deep is the sea\n",
    "topics.tsv": "id\ttext\n1\tboots\n2\tdeep sea\n",
    "gone.tsv": "sea\tunwanted\n",
    "notes/monday.md": "the river was deep\n",
    "manual/care.md": "# Care\nhow to care for leather\n",
    "incdsi.toml": "threads = 1\n",
}
KNOWN = lines(
    {
        "id": "boots-17",
        "title": "Waterproof boots",
        "text": "hiking leather boots",
        "lang": "en",
        "price": 90,
        "year": 2001,
    },
    {"id": "boots-18", "text": "boots for a deep river", "lang": "en", "year": 2005, "queries": ["is the river deep"]},
    {"id": "sea", "text": "how deep is the sea", "lang": "de"},
)


@pytest.fixture(scope="module")
def world(exported: OnnxEncoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and the files that examples name."""
    folder = tmp_path_factory.mktemp("world")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    (folder / "docs.jsonl.gz").write_bytes(gzip.compress(FILES["docs.jsonl"].encode()))
    shell(f"incdsi add - --index shop --encoder {exported.folder}", folder, KNOWN)
    shutil.copytree(folder / "shop", folder / "indexes" / "shop")
    return folder


@pytest.fixture(scope="module")
def server(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(world / "shop", folder / "shop")
    command = ["incdsi", "serve", "--index", "shop", "--port", "0", "--json", "--log-queries", "queries.jsonl"]
    with subprocess.Popen(
        [*command, "--log-clicks", "clicks.jsonl"], cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["address"]
        process.terminate()


def shell(command: str, folder: Path, stdin: str | None = None) -> str:
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=ENVIRONMENT,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, f"{command}\n{run.stdout}\n{run.stderr}"
    return run.stdout + run.stderr


def serve_until_it_says_where(command: str, folder: Path) -> None:
    """However long filling an index takes here; Ctrl-C then ends it in good order."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command}"],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        said = ""
        while "http://127.0.0.1:" not in said:
            line = process.stdout.readline()
            assert line, f"{command}\n{said}"
            said += line
        process.send_signal(signal.SIGINT)
        assert process.wait() == 0, said + process.stdout.read()


def test_the_page_shows_every_example_as_one() -> None:
    assert len(re.findall(r"^```", PAGE, re.MULTILINE)) == 2 * len(BLOCKS)
    assert all("incdsi " in example for example in EXAMPLES)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, world: Path, server: str, tmp_path: Path) -> None:
    for what, where in ELSEWHERE.items():
        if what in example:
            pytest.skip(where)
    folder = tmp_path / "here"
    shutil.copytree(world, folder)
    for what, before in BEFORE.items():
        if example.startswith(what):
            shell(before, folder)
    command = re.sub(r" --port \d+", "", example.replace(SERVER, server))
    if "incdsi serve" in example:
        serve_until_it_says_where(f"{command} --port 0", folder)
    else:
        shell(command, folder, stdin="")  # which ends `incdsi mcp`
