"""The command line: parse, call, print. One file per group of commands."""

import os
from importlib import import_module
from importlib.util import find_spec

# This process is ours, and numpy is not imported yet: requests and scans over rows run in parallel, the small systems
# of the solver do not, where waking other threads costs more than they bring. See docs/decisions/0006.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from incdsi.cli.agents import mcp
from incdsi.cli.app import app, main
from incdsi.cli.clicks import gaps, learn
from incdsi.cli.encoders import model
from incdsi.cli.keeping import backup, compact, restore, verify
from incdsi.cli.learning import train, tune
from incdsi.cli.looking import export, get, info, search, version
from incdsi.cli.migrating import migrate
from incdsi.cli.serving import serve
from incdsi.cli.syncing import sync
from incdsi.cli.writing import add, delete, resolve, teach, update, upsert

if find_spec("incdsi_lab"):
    import_module("incdsi_lab.repro")  # the laboratory, where it is installed, adds a command

__all__ = [
    "add",
    "app",
    "backup",
    "compact",
    "delete",
    "export",
    "gaps",
    "get",
    "info",
    "learn",
    "main",
    "mcp",
    "migrate",
    "model",
    "resolve",
    "restore",
    "search",
    "serve",
    "sync",
    "teach",
    "train",
    "tune",
    "update",
    "upsert",
    "verify",
    "version",
]
