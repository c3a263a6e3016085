"""Where document vectors, preserve rows and own scores live; top-k and violators."""

from incdsi.rows.local import LocalRows

__all__ = ["LocalRows"]
