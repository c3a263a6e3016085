"""Documents every user has: the docstrings of their own Python, read without importing anything."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from incdsi.documents import Document

SKIPPED = {
    "test",
    "tests",
    "idlelib",
    "lib2to3",
    "site-packages",
    "__pycache__",
    "turtledemo",
    "ensurepip",
    "pydoc_data",
}
LEAST = 60  # characters a docstring needs to say something
COMPILED = ("builtins", "itertools", "math", "_functools", "_operator", "time", "posix", "_collections", "zlib", "sys")


def python_documentation() -> list[Document]:
    """Language topics and the docstrings of the standard library, one document each."""
    library = Path(sysconfig.get_path("stdlib"))
    sources = (path for path in sorted(library.rglob("*.py")) if not SKIPPED & set(path.relative_to(library).parts))
    found = [*_topics(), *_compiled(), *(one for path in sources for one in _docstrings(path, library))]
    return list({document.id: document for document in found}.values())


def choice(documents: list[Document], most: int) -> list[Document]:
    """At most `most`, in order: topics, modules and classes first, then functions, evenly spaced."""
    functions = [place for place, document in enumerate(documents) if document.metadata["kind"] == "function"]
    others = sorted(set(range(len(documents))) - set(functions))[:most]
    room = min(len(functions), most - len(others))
    chosen = {*others, *(functions[number * len(functions) // room] for number in range(room))}
    return [documents[place] for place in sorted(chosen)]


def package_documentation(package: str) -> list[Document]:
    """The docstrings of an installed package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(spec.submodule_search_locations[0])
    sources = (path for path in sorted(folder.rglob("*.py")) if not path.name.startswith("_"))
    found = [one for path in sources for one in _docstrings(path, folder.parent)]
    return list({document.id: document for document in found}.values())


def _topics() -> Iterator[Document]:
    for name, text in importlib.import_module("pydoc_data.topics").topics.items():
        yield Document(id=f"topic:{name}", title=name, text=text, metadata={"kind": "topic"})


def _compiled() -> Iterator[Document]:
    for module_name in COMPILED:
        if module_name not in sys.builtin_module_names:
            continue
        module = importlib.import_module(module_name)
        for name, value in sorted(vars(module).items()):
            text = inspect.getdoc(value) if callable(value) and not name.startswith("_") else None
            if text and len(text) >= LEAST:
                title = f"{module_name.lstrip('_')}.{name}"
                yield Document(id=title, title=title, text=text, metadata={"kind": "function"})


def _docstrings(path: Path, root: Path) -> Iterator[Document]:
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):  # a file for another Python
        return
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    yield from _documents(tree, module)


def _documents(
    node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, name: str
) -> Iterator[Document]:
    text = ast.get_docstring(node)
    if text and len(text) >= LEAST:
        kind = "module" if isinstance(node, ast.Module) else "class" if isinstance(node, ast.ClassDef) else "function"
        yield Document(id=name, title=name, text=text, metadata={"kind": kind})
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for child in node.body:
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and child.name[0] != "_":
            yield from _documents(child, f"{name}.{child.name}")
