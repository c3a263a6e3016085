"""`make release-check`: every distribution is built, looked into, installed in an empty environment and tried.

Each sdist is made of the checkout and each wheel of its sdist. What is tried is the installed wheel, in an empty
folder, under every Python named (or the one that runs this): the package by README's first commands, the adapters by
their pages' code.
"""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from tests.light import first_commands

ROOT = Path(__file__).parent.parent
ADAPTERS = {
    "langchain-incdsi": "langchain",
    "incdsi-haystack": "haystack",
    "llama-index-retrievers-incdsi": "llamaindex",
}
TYPED = {
    "incdsi": ["incdsi", "incdsi_lab"],
    "langchain-incdsi": ["langchain_incdsi"],
    "incdsi-haystack": [
        "haystack_integrations/components/retrievers/incdsi",
        "haystack_integrations/document_stores/incdsi",
    ],
    "llama-index-retrievers-incdsi": ["llama_index/indices/managed/incdsi", "llama_index/retrievers/incdsi"],
}
# Of a package's files, and what an sdist has beside them.
KINDS = {
    ".py",
    ".typed",
    ".html",
    ".css",
    ".js",
    ".svg",
    ".json",
    ".txt",
    ".woff2",
    ".ico",
    ".png",
}
BESIDE = {
    "PKG-INFO",
    "pyproject.toml",
    "LICENSE",
    "README.md",
    "CHANGELOG.md",
    ".gitignore",
}


def main() -> None:
    pythons = sys.argv[1:] or [sys.executable]
    with tempfile.TemporaryDirectory(prefix="incdsi-release-") as folder:
        wheels = built(Path(folder))
        problems = [problem for wheel in wheels.values() for problem in looked_into(wheel)]
        versions = {name: wheel.name.split("-")[1] for name, wheel in wheels.items()}
        if set(versions.values()) != {version()}:
            problems.append(f"expected version {version()} everywhere, found {versions}")
        for python in () if problems else pythons:
            tried(Path(folder), python, wheels)
    sys.exit("\n".join(problems) or None)


def version() -> str:
    """The one in the one place."""
    source = (ROOT / "src" / "incdsi" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.*)"$', source, re.MULTILINE)[0]


def built(folder: Path) -> dict[str, Path]:
    """The wheel of each distribution, made of its sdist, beside which it lies."""
    tools, wheels = environment(folder / "tools", sys.executable), dict[str, Path]()
    run(tools, folder, "pip", "install", "--constraint", ROOT / "constraints.txt", "build", "hatchling>=1.25")
    for name in TYPED:
        out = folder / "dist" / name
        place = ROOT if name == "incdsi" else ROOT / "integrations" / name
        run(tools, folder, "python", "-m", "build", "--no-isolation", "--outdir", out, place)
        (wheels[name],) = out.glob("*.whl")
        print(f"built {wheels[name].name}, {wheels[name].stat().st_size / 1e3:.0f} kB")
    return wheels


def looked_into(wheel: Path) -> list[str]:
    """What is wrong with a wheel and its sdist."""
    name = wheel.parent.name
    with zipfile.ZipFile(wheel) as archive:
        inside = archive.namelist()
        (described,) = (archive.read(one).decode() for one in inside if one.endswith(".dist-info/METADATA"))
    (sdist,) = wheel.parent.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        shipped = [one.split("/", 1)[1] for one in archive.getnames() if "/" in one]
    code = [one for one in inside if ".dist-info/" not in one]
    packages = TYPED[name]
    own = [one for one in code if one.startswith(tuple(f"{package}/" for package in packages))]
    metadata = email.message_from_string(described)
    checks = {
        "has no py.typed": [one for one in packages if f"{one}/py.typed" not in inside],
        "has no licence": [] if any(one.endswith(".dist-info/licenses/LICENSE") for one in inside) else ["LICENSE"],
        "has files outside its packages": sorted({*code} - {*own}),
        "has files of a strange kind": [one for one in own if Path(one).suffix not in KINDS],
        "has a sdist with strange files": [one for one in shipped if not _belongs(one)],
        "has no description": [] if metadata.get_payload() else ["README.md"],
    }
    return [f"{wheel.name} {problem}: {', '.join(found)}" for problem, found in checks.items() if found]


def _belongs(shipped: str) -> bool:
    return shipped in BESIDE or (shipped.split("/")[0] in ("src", "tests") and "__pycache__" not in shipped)


def tried(folder: Path, python: str, wheels: dict[str, Path]) -> None:
    """README's first commands and the pages' code, in empty environments."""
    place = folder / Path(python).name / "all"
    fresh = environment(place, python)
    pinned = ("pip", "install", "--constraint", ROOT / "constraints.txt")
    run(fresh, folder, *pinned, f"incdsi[server] @ {wheels['incdsi'].as_uri()}")
    where = "import incdsi, platform; print(platform.python_version(), incdsi.__file__)"
    number, source = run(fresh, folder, "python", "-c", where).split()
    if not Path(source).is_relative_to(place):
        sys.exit(f"incdsi was imported from {source}, not from the wheel")
    said = run(fresh, empty(folder), "bash", "-euc", first_commands())
    if not re.search(r"^\W*1\W+.*boots-17", said, re.MULTILINE):
        sys.exit(f"boots-17 is not the first hit:\n{said}")
    print(f"Python {number}: incdsi works")
    run(fresh, folder, *pinned, *wheels.values())
    for name, page in ADAPTERS.items():
        code = "".join(blocks(ROOT / "docs" / "integrations" / f"{page}.md", "python"))
        said = run(fresh, empty(folder), "python", "-c", code)
        if "stove-2" not in said.splitlines():
            sys.exit(f"{name}: what was taught is not the first hit:\n{said}")
        print(f"Python {number}: {name} works")


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def environment(place: Path, python: str) -> Path:
    """The commands of a new environment of that Python."""
    subprocess.run([python, "-m", "venv", str(place)], check=True)
    return place / "bin"


def empty(folder: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=folder))


def run(commands: Path, folder: Path, *command: str | Path) -> str:
    """What a command prints, started in a folder, with nothing of ours in its way."""
    quiet = ["--quiet", "--disable-pip-version-check", "--no-compile"] if command[:2] == ("pip", "install") else []
    others = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    variables = {"PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "HAYSTACK_TELEMETRY_ENABLED": "False"}
    done = subprocess.run(
        [str(part) for part in (*command[:2], *quiet, *command[2:])],
        cwd=folder,
        env={**others, **variables},
        text=True,
        capture_output=True,
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command[:4]))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


if __name__ == "__main__":
    main()
