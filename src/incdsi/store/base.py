"""The memory-mapped base: a cache of arrays, rebuilt whenever it is missing or torn.

One file a generation, `base.<generation>.bin`:

    magic (8) | header length (8, little endian) | sha256 of the header (32) | header, JSON | arrays

The header names the store, the generation, the sequence the arrays reflect, the length of the file,
and for each array its dtype, shape, offset (a multiple of 64), sha256 and checksum (XXH3). An array of rows may have
their sums beside it, `<name>.sums`: whoever reads a row compares it with its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128

from incdsi.durable import fsync
from incdsi.errors import DamagedBase, InvalidInput
from incdsi.mapped import let_go

MAGIC = b"IDSIBASE"
_ALIGNMENT = 64
_PART = 4096  # rows of an array that are written at a time
_READ = 1 << 24  # bytes of one that are in memory at a time while it is checked
_FIXED = 8 + 8 + 32
_DIGESTS: Mapping[str, Any] = {"sha256": hashlib.sha256, "checksum": xxh3_128}
_NAME = re.compile(r"base\.(\d+)\.bin(\.tmp)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """Read-only memory-mapped arrays, and the sequence of the last change they reflect.

    An array is checked byte for byte when it is first taken, unless its rows have sums of their own; a damaged one
    raises DamagedBase: read the store instead.
    """

    arrays: Mapping[str, NDArray[Any]]
    sequence: int


class Array(Protocol):
    """What a base stores: an array, or what gives the slices of one that is too large to hold twice."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, here: slice, /) -> Any: ...


class Identity(NamedTuple):
    """Which base the store means; a file that says otherwise is not it."""

    store: str
    generation: int
    sequence: int


class TornBaseError(Exception):
    """A base file that is not what its store committed; never leaves this room."""


def base_file(folder: Path, generation: int) -> Path:
    """Where a generation lives."""
    return folder / f"base.{generation}.bin"


def write_base_file(folder: Path, identity: Identity, arrays: Mapping[str, Array]) -> None:
    """Writes a generation beside the others, fsynced, under its own name only when it is whole."""
    _require_plain(arrays)
    target = base_file(folder, identity.generation)
    temporary = target.with_name(target.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            _Written(file, identity, arrays).write()
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    fsync(folder)


def read_base_file(folder: Path, identity: Identity, *, full: bool = False) -> Base:
    """Maps a generation; checks header and length, and with `full` every byte by its sha256. Raises TornBaseError."""
    file = base_file(folder, identity.generation)
    try:
        header = _read_header(file, identity)
        mapped = np.memmap(file, dtype=np.uint8, mode="r")
        arrays = {name: _view(mapped, entry) for name, entry in header["arrays"].items()}
    except (KeyError, TypeError, ValueError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise TornBaseError(f"{file}: {error}") from error
    proofs = {name: _proof(entry, full) for name, entry in header["arrays"].items()}
    checked = _Checked(file, arrays, proofs, rows=full)
    try:
        for name in checked if full else ():
            checked[name]
    except DamagedBase as error:
        raise TornBaseError(str(error)) from error
    return Base(arrays=checked, sequence=identity.sequence)


class _Checked(Mapping[str, NDArray[Any]]):
    """Arrays that prove their checksum when they are first asked for; with `rows`, those whose rows have sums too."""

    def __init__(
        self, file: Path, arrays: Mapping[str, NDArray[Any]], proofs: Mapping[str, tuple[str, str]], *, rows: bool
    ) -> None:
        self._file = file
        self._arrays = arrays
        self._unproved = {name: proof for name, proof in proofs.items() if rows or f"{name}.sums" not in arrays}

    def __getitem__(self, name: str) -> NDArray[Any]:
        array = self._arrays[name]
        if name in self._unproved:
            kind, digest = self._unproved[name]
            if _digest(array, kind) != digest:
                raise DamagedBase(f"{self._file}: array {name!r} does not match its checksum")
            del self._unproved[name]
        return array

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def remove_bases(folder: Path, *, keep: int | None) -> None:
    """Removes every base file but generation `keep`; processes that mapped one keep their map."""
    for file in folder.iterdir():
        match = _NAME.fullmatch(file.name)
        if match and (match[2] or int(match[1]) != keep):
            file.unlink(missing_ok=True)


class _Written:
    """A file that is written from its first byte to its last, each array a part at a time; then its header is known."""

    def __init__(self, file: Any, identity: Identity, arrays: Mapping[str, Array]) -> None:
        self._file = file
        self._identity = identity
        self._arrays = arrays
        nothing = {kind: begin().hexdigest() for kind, begin in _DIGESTS.items()}  # as long as what will be written
        self._digests = dict.fromkeys(arrays, nothing)

    def write(self) -> None:
        start = _aligned(_FIXED + len(self._packed()))  # as long as it will be in the end
        for name, entry in self._header()["arrays"].items():
            self._pad(start + entry["offset"])
            self._digests[name] = self._write(self._arrays[name], entry["dtype"])
        self._pad(start + self._header()["length"])
        packed = self._packed()
        self._file.seek(0)
        self._file.write(MAGIC + len(packed).to_bytes(8, "little") + hashlib.sha256(packed).digest() + packed)

    def _pad(self, position: int) -> None:
        self._file.write(b"\0" * (position - self._file.tell()))

    def _write(self, array: Array, dtype: str) -> dict[str, str]:
        """The digests of what was written."""
        digests = {kind: begin() for kind, begin in _DIGESTS.items()}
        for start in range(0, len(array), _PART):
            part = np.ascontiguousarray(array[start : start + _PART], dtype=dtype)
            for digest in digests.values():
                digest.update(_bytes(part))
            self._file.write(_bytes(part))
        return {kind: digest.hexdigest() for kind, digest in digests.items()}

    def _packed(self) -> bytes:
        return json.dumps(self._header()).encode()

    def _header(self) -> dict[str, Any]:
        entries, offset = {}, 0  # offsets count from the first aligned byte after the header
        for name, array in self._arrays.items():
            dtype = array.dtype.newbyteorder("<")
            entries[name] = {
                "dtype": dtype.str,
                "shape": list(array.shape),
                "offset": offset,
                **self._digests[name],
            }
            offset = _aligned(offset + math.prod(array.shape) * dtype.itemsize)
        return {**self._identity._asdict(), "length": offset, "arrays": entries}


def _require_plain(arrays: Mapping[str, Array]) -> None:
    for name, array in arrays.items():
        if array.dtype.kind not in "biufSU" or not array.shape:
            raise InvalidInput(f"base array {name!r}: expected numbers, booleans or text, found dtype {array.dtype}")


def _read_header(file: Path, identity: Identity) -> dict[str, Any]:
    with file.open("rb") as stream:
        fixed = stream.read(_FIXED)
        if len(fixed) != _FIXED or fixed[:8] != MAGIC:
            raise ValueError("not a base file")
        length = int.from_bytes(fixed[8:16], "little")
        size = os.fstat(stream.fileno()).st_size
        packed = stream.read(length) if length <= size else b""
        if hashlib.sha256(packed).digest() != fixed[16:]:
            raise ValueError("the header does not match its checksum")
        header: dict[str, Any] = json.loads(packed)
    start = _aligned(_FIXED + length)
    if size != start + header["length"]:
        raise ValueError(f"expected {start + header['length']} bytes, found {size}")
    if Identity(header["store"], header["generation"], header["sequence"]) != identity:
        raise ValueError("not the base that the store committed")
    for entry in header["arrays"].values():
        entry["offset"] += start
    return header


def _view(mapped: NDArray[np.uint8], entry: Mapping[str, Any]) -> NDArray[Any]:
    dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    view: NDArray[Any] = mapped[entry["offset"] : entry["offset"] + count].view(dtype).reshape(shape)
    return view


def _bytes(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _proof(entry: Mapping[str, str], full: bool) -> tuple[str, str]:
    """The kind of digest that an array is checked by, and the digest; bases of older versions have no checksum."""
    kind = "sha256" if full or "checksum" not in entry else "checksum"
    return kind, entry[kind]


def _digest(array: NDArray[Any], kind: str) -> str:
    digest, raw = _DIGESTS[kind](), array.reshape(-1).view(np.uint8)
    for start in range(0, len(raw), _READ):
        part = raw[start : start + _READ]
        digest.update(part.data)
        let_go(part)
    found: str = digest.hexdigest()
    return found


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
