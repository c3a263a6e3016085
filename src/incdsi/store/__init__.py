"""What survives: SQLite is the truth, everything else in the folder is a cache or a lock."""

from incdsi.store.base import Base
from incdsi.store.reading import Changes
from incdsi.store.store import Store

__all__ = ["Base", "Changes", "Store"]
