"""An ONNX graph as bytes: the few messages of its protobuf that an encoder needs.

Field numbers are those of onnx.proto; the format is frozen, and writing it takes 60 lines where the package `onnx`
takes 40 MB.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from incdsi.text.encoders.weights import Tensor

IR_VERSION, OPSET = 9, 20  # onnxruntime 1.20 reads both
FLOAT, INT64 = 1, 7
KINDS = {"float32": FLOAT, "int64": INT64, "F32": FLOAT, "F16": 10, "BF16": 16}
Attribute = int | float | str | Sequence[int]


class Graph:
    """Nodes in the order of the calculation; every method returns the name of what it adds."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._constants: dict[bytes, str] = {}  # by content, so that equal ones are stored once

    def node(self, operator: str, *inputs: str, **attributes: Attribute) -> str:
        """The first output of an operator."""
        return self._written(f"v{len(self._nodes)}", operator, *inputs, **attributes)

    def named(self, name: str, value: str) -> str:
        """The same value under a name that whoever opens the graph can ask for."""
        return self._written(name, "Identity", value)

    def _written(self, output: str, operator: str, *inputs: str, **attributes: Attribute) -> str:
        self._nodes.append(
            b"".join(_field(1, name) for name in inputs)
            + _field(2, output)
            + _field(4, operator)
            + b"".join(_field(5, _attribute(name, value)) for name, value in attributes.items())
        )
        return output

    def constant(self, values: NDArray[np.float32] | NDArray[np.int64]) -> str:
        """An array inside the graph."""
        content = _tensor(values.shape, KINDS[values.dtype.name]) + _field(9, values.tobytes())
        return self._constants.setdefault(content, f"c{len(self._constants)}")

    def integers(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value: float) -> str:
        """A constant float32."""
        return self.constant(np.array(value, dtype=np.float32))

    def tensor(self, tensor: Tensor) -> str:
        """A model's tensor as a constant."""
        content = _tensor(tensor.shape, KINDS[tensor.dtype]) + _field(9, tensor.bytes().tobytes())
        return self._wide(content, tensor)

    def stored(self, tensor: Tensor) -> str:
        """The same, left in its file beside the graph."""
        places = (("location", tensor.path.name), ("offset", str(tensor.begin)), ("length", str(tensor.size)))
        content = _tensor(tensor.shape, KINDS[tensor.dtype]) + _field(14, 1)
        content += b"".join(_field(13, _field(1, key) + _field(2, value)) for key, value in places)
        return self._wide(content, tensor)

    def _wide(self, content: bytes, tensor: Tensor) -> str:
        """Half precision becomes float32 once, when the graph is opened."""
        name = self._constants.setdefault(content, f"c{len(self._constants)}")
        return name if tensor.dtype == "F32" else self.node("Cast", name, to=FLOAT)

    def serialised(self, inputs: Sequence[str], outputs: Mapping[str, Sequence[str | int]]) -> bytes:
        """The model: int64 inputs of (batch, length), float32 outputs of these shapes."""
        graph = b"".join(_field(1, node) for node in self._nodes)
        graph += _field(2, "encoder")
        graph += b"".join(_field(5, content + _field(8, name)) for content, name in self._constants.items())
        graph += b"".join(_field(11, _value(name, INT64, ("batch", "length"))) for name in inputs)
        graph += b"".join(_field(12, _value(name, FLOAT, shape)) for name, shape in outputs.items())
        opset = _field(1, "") + _field(2, OPSET)
        return _field(1, IR_VERSION) + _field(2, "incdsi") + _field(7, graph) + _field(8, opset)


def _tensor(shape: Sequence[int], kind: int) -> bytes:
    return b"".join(_field(1, size) for size in shape) + _field(2, kind)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(_field(1, _field(2, size) if isinstance(size, str) else _field(1, size)) for size in shape)
    return _field(1, name) + _field(2, _field(1, _field(1, kind) + _field(2, sizes)))


def _attribute(name: str, value: Attribute) -> bytes:
    if isinstance(value, float):
        return _field(1, name) + _varint(2 << 3 | 5) + struct.pack("<f", value) + _field(20, 1)
    if isinstance(value, int):
        return _field(1, name) + _field(3, value) + _field(20, 2)
    if isinstance(value, str):
        return _field(1, name) + _field(4, value) + _field(20, 3)
    return _field(1, name) + b"".join(_field(8, number) for number in value) + _field(20, 7)


def _field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1  # negative numbers as two's complement
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out + bytes([value]))
