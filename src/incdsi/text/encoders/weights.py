"""What a safetensors file holds: eight bytes of length, a JSON header, then the tensors."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidFile

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "I64": 8}
LONGEST_HEADER = 100_000_000  # the format's own limit


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in its file: `size` bytes from `begin`."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    begin: int
    size: int

    def bytes(self) -> NDArray[np.uint8]:
        """Its bytes, mapped, not read."""
        return np.memmap(self.path, np.uint8, "r", self.begin, (self.size,)) if self.size else np.empty(0, np.uint8)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file by name, those of unused kinds left out. Raises InvalidFile."""
    try:
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            header = json.loads(stream.read(min(length, LONGEST_HEADER)))
        end = path.stat().st_size
        found = {
            name: _tensor(path, entry, 8 + length, end) for name, entry in header.items() if name != "__metadata__"
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidFile(f"this is not a safetensors file ({error}); fetch the model again", path=path) from error
    return {name: tensor for name, tensor in found.items() if tensor.dtype in SIZES}


def _tensor(path: Path, entry: Any, start: int, end: int) -> Tensor:
    shape = tuple(int(size) for size in entry["shape"])
    first, last = (int(place) for place in entry["data_offsets"])
    size, each = last - first, SIZES.get(entry["dtype"])
    if first < 0 or start + last > end or (each is not None and size != each * math.prod(shape)):
        raise ValueError(f"a tensor lies at {first} to {last} of {end - start} bytes")
    return Tensor(path, str(entry["dtype"]), shape, start + first, size)
