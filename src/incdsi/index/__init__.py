"""The one place where text, solver, rows, store and words meet."""

from incdsi.index.index import Index

__all__ = ["Index"]
