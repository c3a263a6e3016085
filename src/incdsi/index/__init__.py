"""The one place where text, solver, rows, store and words meet."""

from incdsi.index.asynchronous import AsyncIndex
from incdsi.index.index import Index

__all__ = ["AsyncIndex", "Index"]
