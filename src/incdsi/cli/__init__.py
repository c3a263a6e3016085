"""The command line: parse, call, print. One file per group of commands; a command imports its own file alone."""

import atexit
import gc
import os
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any

# This process is ours, and numpy is not imported yet: requests and scans over rows run in parallel, the small systems
# of the solver do not, where waking other threads costs more than they bring. See docs/decisions/0006.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from incdsi.cli import application

__all__ = ["app", "main"]

FILES = {
    "agents": ("mcp",),
    "clicks": ("gaps", "learn"),
    "encoders": ("model",),
    "keeping": ("backup", "compact", "restore", "verify"),
    "searching": ("search",),
    "looking": ("export", "get", "info", "version"),
    "learning": ("train", "tune"),
    "migrating": ("migrate",),
    "serving": ("serve",),
    "syncing": ("sync",),
    "writing": ("add", "delete", "resolve", "teach", "update", "upsert"),
}


def main() -> None:
    """What the script `incdsi` runs."""
    atexit.register(gc.freeze)  # a process that ends need not look for garbage among all it imported: 40 ms
    _register(sys.argv[1] if len(sys.argv) > 1 else "")
    application.run()


def _register(command: str) -> None:
    """The commands of the file that has this one, or all of them: describing each to typer takes milliseconds."""
    found = [file for file, commands in FILES.items() if command in commands]
    for file in found or FILES:
        import_module(f"incdsi.cli.{file}")
    if not found and find_spec("incdsi_lab"):
        import_module("incdsi_lab.repro")  # the laboratory, where it is installed, adds a command


def __getattr__(name: str) -> Any:
    # Whoever asks for the application as an object gets it with every command.
    if name == "app":
        _register("")
        return application.app
    raise AttributeError(f"module 'incdsi.cli' has no attribute {name!r}")
