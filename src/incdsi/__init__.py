"""incdsi: a learned search index that takes a new document in milliseconds."""

from incdsi.documents import Addition, Document, Hit, Query
from incdsi.errors import IncDSIError
from incdsi.hyperparameters import Hyperparameters, Margins, Weights
from incdsi.index import Index

__all__ = ["Addition", "Document", "Hit", "Hyperparameters", "IncDSIError", "Index", "Margins", "Query", "Weights"]
__version__ = "0.1.0"
