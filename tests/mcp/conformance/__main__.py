"""`make test-mcp`: `incdsi mcp` before the protocol's own conformance package and TypeScript SDK, both from npm.

The package runs every scenario over HTTP; not_applicable.yml says which ones are about things we do not offer. The
SDK's client, which shares no code with our server, uses each tool over HTTP and over stdin and stdout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from incdsi import Index
from tests.mcp.commands import command, listening

HERE = Path(__file__).parent
REQUIRED = "INCDSI_REQUIRE_NODE"  # set where skipping is a failure
NEWEST_ENOUGH = 22
MARKS = re.compile(r"\x1b\[\d+m")  # colours
CLIENT = "client.mjs"
DOCUMENTS = [
    {"id": "boots-17", "text": "Waterproof hiking boots with a rubber sole."},
    {"id": "stove-2", "text": "A gas stove that boils a litre in three minutes."},
]


def main() -> None:
    if (reason := missing()) is not None:
        sys.exit(f"not run: {reason}" if os.environ.get(REQUIRED) else skipped(reason))
    node = Node(Path(sys.prefix) / "mcp-conformance")
    with tempfile.TemporaryDirectory(prefix="incdsi-mcp-") as folder:
        shop = Path(folder) / "shop"
        with Index.create(shop) as index:
            index.add_many(DOCUMENTS)
        with listening(shop) as address:
            summary = conformance(node, address, Path(folder))
            used(node, address)
        used(node, *command("--index", shop, "--write"))
    print(summary)
    print("every tool by the TypeScript SDK: passed over HTTP, passed over stdin and stdout")


def missing() -> str | None:
    """Why nothing can be run here."""
    return None if shutil.which("npm") else f"npm is not installed; install Node.js {NEWEST_ENOUGH} or newer"


def skipped(reason: str) -> None:
    print(f"skipped: {reason}")


class Node:
    """The pinned packages, installed once into a folder, and a Node.js that is new enough for them."""

    def __init__(self, folder: Path) -> None:
        self.folder, lock = folder, "package-lock.json"
        if not (folder / "node_modules").exists() or (folder / lock).read_bytes() != (HERE / lock).read_bytes():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for name in ("package.json", lock):
                shutil.copy(HERE / name, folder)
            subprocess.run(["npm", "ci", "--silent", "--no-audit", "--no-fund"], cwd=folder, check=True)
        shutil.copy(HERE / CLIENT, folder)  # beside the packages it imports
        self.programs = folder / "node_modules" / ".bin"
        self.environment = {**os.environ, "PATH": f"{self.programs}{os.pathsep}{os.environ['PATH']}"}
        version = self.run("node", "--version").stdout
        if int(version.strip("v").split(".")[0]) < NEWEST_ENOUGH:
            sys.exit(f"these packages need Node.js {NEWEST_ENOUGH} or newer; this one is {version.strip()}")

    def run(self, program: str, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        named = [shutil.which(program, path=self.environment["PATH"]) or program, *map(str, arguments)]
        return subprocess.run(named, env=self.environment, cwd=cwd, capture_output=True, text=True, check=False)


def conformance(node: Node, address: str, folder: Path) -> str:
    """Its summary; ends with everything it said when a scenario fails that has to pass."""
    baseline = HERE / "not_applicable.yml"
    asked = ("server", "--url", address, "--suite", "all", "--expected-failures", baseline)
    done = node.run("conformance", *asked, cwd=folder)
    said = MARKS.sub("", done.stdout)
    if done.returncode or "=== SUMMARY ===" not in said:
        sys.exit(f"{said}{done.stderr}")
    return said[said.index("=== SUMMARY ===") :].strip()


def used(node: Node, *server: object) -> None:
    """Every tool by the client; ends with what it said when one fails."""
    done = node.run("node", node.folder / CLIENT, *server)
    if done.returncode:
        sys.exit(f"{CLIENT} {' '.join(map(str, server))}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
