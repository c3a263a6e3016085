"""The header of a safetensors file: read as the library reads it, and refused when it lies."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incdsi.errors import InvalidFile
from incdsi.text.encoders.weights import read_tensors


def file(path: Path, header: Any, content: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content)
    return path


def test_tensors_are_those_that_safetensors_reads(tmp_path: Path) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array(2.5, dtype=np.float16),
        "none": np.empty((0, 3), dtype=np.float32),
        "positions": np.arange(4),
    }
    numpy.save_file(arrays, tmp_path / "w.safetensors", metadata={"format": "np"})
    found = read_tensors(tmp_path / "w.safetensors")
    assert set(found) == set(arrays)
    for name, array in arrays.items():
        assert found[name].shape == array.shape
        assert found[name].bytes().tobytes() == array.tobytes()


def test_a_kind_that_nobody_uses_is_left_out(tmp_path: Path) -> None:
    entry = {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}
    assert read_tensors(file(tmp_path / "w", {"mask": entry}, b"ab")) == {}


@pytest.mark.parametrize(
    "header",
    [
        [],
        b"{",
        {"a": 3},
        {"a": {"dtype": "F32", "shape": [1]}},
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 8]}},  # more bytes than one number
        {"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}},  # beyond the end
        {"a": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}},  # inside the header
        {"a": {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]}},
    ],
)
def test_a_header_that_lies_is_refused(tmp_path: Path, header: Any) -> None:
    with pytest.raises(InvalidFile, match=r"not a safetensors file .*fetch the model again"):
        read_tensors(file(tmp_path / "w", header, bytes(8)))


@given(content=st.binary(max_size=64))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(content)
    with contextlib.suppress(InvalidFile):
        assert read_tensors(path) == {}
