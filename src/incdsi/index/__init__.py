"""The one place where text, solver, rows, store and words meet."""

from incdsi.index.index import Index
from incdsi.index.info import Info

__all__ = ["Index", "Info"]
