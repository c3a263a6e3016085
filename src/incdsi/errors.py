"""Every exception incdsi raises on purpose.

IncDSIError
├── InvalidInput (ValueError)            an argument that cannot be right
│   ├── InvalidDocument                  a document without id, text or usable metadata
│   ├── InvalidProblem                   arrays the solver cannot work with
│   ├── InvalidHyperparameters           a weight or margin out of range
│   ├── InvalidFile                      a file or line that cannot be read; carries path and line
│   └── ReadOnlyIndex (PermissionError)  a folder that cannot be written: it can be searched and read
├── UnknownDocument (KeyError)           an id that is not there
├── DuplicateDocument (ValueError)       an id that is there already, or twice in one batch
├── VersionConflict (RuntimeError)       somebody changed the index since `if_version`
├── ModelNotFound (LookupError)          no encoder under that name, folder or package
├── EncoderMismatch (ValueError)         another encoder than the index was built with
├── EncoderUnavailable (RuntimeError)    an encoder behind HTTP that does not answer, or refuses
├── MissingExtra (ImportError)           an optional part that is not installed
├── NeedsFolder (AttributeError)         what a server cannot do: it needs the index's folder
├── IndexLocked (RuntimeError)           another process is writing
├── IndexNotFound (FileNotFoundError)    no index in that folder
├── UnsupportedFormat (RuntimeError)     an index written by a newer incdsi
├── CorruptStore (RuntimeError)          the store is damaged; restore a backup
│   └── DamagedBase                      its cache is, and is made anew from the store: try again
├── DiskFull (OSError)                   no room left; nothing of the change was kept
├── DiskFailed (OSError)                 the disk cannot be read or written
└── ServerError (RuntimeError)           what only a server says
    ├── ServerUnavailable (ConnectionError)  nobody answers there, or not in time
    ├── NotAllowed (PermissionError)     no key, a wrong one, or one that may only read
    ├── Overloaded                       more than the server takes; carries `retry_after`
    ├── TooLarge (ValueError)            a body, batch or query beyond the server's limit
    ├── TooSlow (TimeoutError)           the request did not arrive in time
    ├── KeyReused (ValueError)           an Idempotency-Key that belongs to another request
    └── NotFound (LookupError)           no such path or method

Wording: what is wrong and what to do.
"""

from __future__ import annotations

import errno
from pathlib import Path


class IncDSIError(Exception):
    """Base of everything incdsi raises on purpose."""


class InvalidInput(IncDSIError, ValueError):
    """An argument that cannot be right."""


class InvalidDocument(InvalidInput):
    """A document without id, or with text or metadata of a wrong kind."""


class InvalidProblem(InvalidInput):
    """Arrays the solver cannot work with: shape, NaN, infinity."""


class InvalidHyperparameters(InvalidInput):
    """A weight or margin out of its range."""


class InvalidFile(InvalidInput):
    """A file, or one line of it, that cannot be read."""

    def __init__(self, message: str, *, path: Path | str | None = None, line: int | None = None) -> None:
        place = f"{path}:{line}: " if line is not None else f"{path}: " if path is not None else ""
        super().__init__(place + message)
        self.path = path
        self.line = line


class ReadOnlyIndex(InvalidInput, PermissionError):
    """The index is in a folder that cannot be written; searching and reading work."""


class UnknownDocument(IncDSIError, KeyError):
    """An id that is not in the index."""

    def __str__(self) -> str:  # KeyError would print the repr of the sentence
        return str(self.args[0])


class DuplicateDocument(IncDSIError, ValueError):
    """An id that is in the index already, or twice in one batch."""


class VersionConflict(IncDSIError, RuntimeError):
    """The index changed since the version the caller named."""


class ModelNotFound(IncDSIError, LookupError):
    """No encoder under that name, in that folder or in an installed package."""


class EncoderMismatch(IncDSIError, ValueError):
    """Another encoder than the one the index was built with."""


class EncoderUnavailable(IncDSIError, RuntimeError):
    """An encoder behind HTTP does not answer, refuses, or answers with something else."""


class MissingExtra(IncDSIError, ImportError):
    """An optional part of incdsi that is not installed."""


class NeedsFolder(IncDSIError, AttributeError):
    """What only an index in a folder can do."""


class IndexLocked(IncDSIError, RuntimeError):
    """Another process is writing to the index."""


class IndexNotFound(IncDSIError, FileNotFoundError):
    """There is no index in that folder."""


class UnsupportedFormat(IncDSIError, RuntimeError):
    """The index was written by a newer incdsi."""


class CorruptStore(IncDSIError, RuntimeError):
    """The store is damaged."""


class DamagedBase(CorruptStore):
    """The base, a cache of the store, is damaged; the next call reads the store instead."""

    def __init__(self, message: str = "the base of the index is damaged; nothing is lost: try again") -> None:
        super().__init__(message)


class DiskFull(IncDSIError, OSError):
    """There is no room left; nothing of the change was kept."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.ENOSPC


class DiskFailed(IncDSIError, OSError):
    """The disk cannot be read or written; a change that met it was kept whole or not at all."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.errno = errno.EIO


class ServerError(IncDSIError, RuntimeError):
    """What only a server says."""


class ServerUnavailable(ServerError, ConnectionError):
    """Nobody answers at that address, or not in time; a write may or may not have been taken."""


class NotAllowed(ServerError, PermissionError):
    """No key, a wrong one, or one that may only read."""


class Overloaded(ServerError):
    """More than the server takes; try again after so many seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooLarge(ServerError, ValueError):
    """A body, batch or query beyond the server's limit."""


class TooSlow(ServerError, TimeoutError):
    """The request did not arrive in time."""


class KeyReused(ServerError, ValueError):
    """An Idempotency-Key that was used for another request."""


class NotFound(ServerError, LookupError):
    """The server does not know this path, or not with this method."""
