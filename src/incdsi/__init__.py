"""incdsi: a learned search index that takes a new document in milliseconds."""

import os
from typing import TYPE_CHECKING, Any

# Before numpy is first imported: threads of its linear algebra that have nothing to do would otherwise spin for
# 25 ms and take the cores from the encoder. See docs/decisions/0006.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")

from incdsi.clicks import Click, Learned
from incdsi.documents import Addition, Document, Hit, Passage, Query, Snippet, Taught
from incdsi.errors import IncDSIError
from incdsi.hyperparameters import Hyperparameters, Margins, Weights
from incdsi.search_index import SearchIndex

if TYPE_CHECKING:
    from incdsi.index import AsyncIndex, Index

__all__ = [
    "Addition",
    "AsyncIndex",
    "Click",
    "Document",
    "Hit",
    "Hyperparameters",
    "IncDSIError",
    "Index",
    "Learned",
    "Margins",
    "Passage",
    "Query",
    "SearchIndex",
    "Snippet",
    "Taught",
    "Weights",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The index brings numpy, SQLite and the tokenizers; `incdsi --help` needs none of them.
    if name in ("AsyncIndex", "Index"):
        from incdsi import index

        return getattr(index, name)
    raise AttributeError(f"module 'incdsi' has no attribute {name!r}")
