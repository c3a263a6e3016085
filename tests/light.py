"""`make try-light`: README's first commands in a fresh environment without torch, timed and weighed.

Time runs from `pip install` to the first hit, with fetching the encoder; it is told, and how busy the machine is
decides nothing. Weight is the environment with the weights.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_SECONDS, MOST_MEGABYTES = 90, 350


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="incdsi-light-") as folder:
        problems = tried(Path(folder))
    sys.exit("; ".join(problems) or None)


def tried(folder: Path) -> list[str]:
    """What is wrong, after everything was printed."""
    environment, shop = folder / "environment", folder / "shop"
    venv.create(environment, with_pip=True)
    shop.mkdir()
    begin = time.perf_counter()
    install = (
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--constraint",
        ROOT / "constraints.txt",
        ROOT,
    )
    run(folder, *install)
    installed = time.perf_counter() - begin
    said = run(folder, "bash", "-euc", first_commands())
    seconds = time.perf_counter() - begin
    torch = run(folder, "python", "-c", "import importlib.util as u; print(u.find_spec('torch') or '')").strip()
    weight = {part: megabytes(folder / part) for part in ("environment", "models")}
    total = sum(weight.values())
    print(said)
    late = f": {seconds - MOST_SECONDS:.0f} s too late" if seconds > MOST_SECONDS else ""
    print(f"pip install {installed:.0f} s, first hit after {seconds:.0f} s (aim {MOST_SECONDS}{late})")
    parts = ", ".join(f"{part} {size:.0f}" for part, size in weight.items())
    print(f"{total:.0f} MB (at most {MOST_MEGABYTES}): {parts}")
    checks = {
        "torch was installed": bool(torch),
        "boots-17 is not the first hit": not re.search(r"^\W*1\W+.*boots-17", said, re.MULTILINE),
        f"the environment takes {total:.0f} MB": total > MOST_MEGABYTES,
    }
    return [sentence for sentence, wrong in checks.items() if wrong]


def first_commands() -> str:
    """README's first block of commands that adds documents, as far as its first search."""
    blocks = re.findall(r"^```\n(.*?)^```", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    block = next(block for block in blocks if "incdsi add " in block)
    return re.split(r"(?<=\n)(?=incdsi search )", block, maxsplit=1)[0] + re.findall(r"incdsi search .*", block)[0]


def run(folder: Path, *command: str | Path) -> str:
    """What a command of the fresh environment prints; its cache is inside the folder too."""
    variables = {
        "PATH": f"{folder / 'environment' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "INCDSI_MODELS": str(folder / "models"),
        "HF_HOME": str(folder / "hub"),
    }
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder / "shop",
        env={**others, **variables},
        text=True,
        capture_output=True,
    )
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stderr + done.stdout


def megabytes(folder: Path) -> float:
    """The bytes of its files, those with several names once."""
    files = {
        (file.stat().st_dev, file.stat().st_ino): file.stat().st_size for file in folder.rglob("*") if file.is_file()
    }
    return sum(files.values()) / 1e6


if __name__ == "__main__":
    main()
