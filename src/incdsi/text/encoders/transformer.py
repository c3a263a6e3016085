"""What every transformer's graph is made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from incdsi.errors import InvalidFile
from incdsi.text.encoders.families import ACTIVATIONS, FAMILIES
from incdsi.text.encoders.graph import FLOAT, Graph
from incdsi.text.encoders.weights import Tensor

LEAST = float(np.finfo(np.float32).min)


class Transformer:
    """One encoder, from its config, its tensors by name, and h, their width; its parts as nodes of a graph.

    Every operator is a plain one of ONNX; onnxruntime fuses them when it opens the graph.
    """

    def __init__(self, graph: Graph, config: Mapping[str, Any], tensors: Mapping[str, Tensor], width: int) -> None:
        self.graph = graph
        self.config = config
        self.tensors = tensors
        self.width = width
        self.family = FAMILIES[config["model_type"]]
        self.heads = config[self.family.heads]
        self.size = width // self.heads
        self.epsilon = float(config.get(self.family.epsilon, 1e-12))

    def token_vectors(self, ids: str, mask: str) -> str:
        """(b, length) ids and mask, both int64 -> (b, length, h)."""
        raise NotImplementedError

    def bias(self, mask: str) -> str:
        """(b, 1, 1, length): what is added to scores, so that nobody attends to padding."""
        graph = self.graph
        absent = graph.node("Sub", graph.number(1.0), graph.node("Cast", mask, to=FLOAT))
        return graph.node("Mul", graph.node("Unsqueeze", absent, graph.integers(1, 2)), graph.number(LEAST))

    def attended(self, query: str, key: str, value: str, bias: str) -> str:
        """(b, heads, length, d) queries and values, (b, heads, d, length) keys -> (b, length, h)."""
        graph = self.graph
        scale = graph.number(math.sqrt(self.size))
        scores = graph.node("Add", graph.node("Div", graph.node("MatMul", query, key), scale), bias)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        joined = graph.node("Transpose", mixed, perm=(0, 2, 1, 3))
        return graph.node("Reshape", joined, graph.integers(0, 0, self.width))

    def activated(self, x: str) -> str:
        """The activation, element by element."""
        return ACTIVATIONS[self.config[self.family.activation]](self.graph, x)

    def linear(self, x: str, name: str) -> str:
        """(..., in) -> (..., out), with its bias if it has one."""
        weight = self.graph.node("Transpose", self.tensor(f"{name}.weight"), perm=(1, 0))
        product = self.graph.node("MatMul", x, weight)
        return self.graph.node("Add", product, self.tensor(f"{name}.bias")) if self.has_bias(name) else product

    def norm(self, x: str, name: str) -> str:
        """Normalisation of the last axis, with its bias if it has one."""
        parts = [self.tensor(f"{name}.weight"), *([self.tensor(f"{name}.bias")] if self.has_bias(name) else [])]
        return self.graph.node("LayerNormalization", x, *parts, axis=-1, epsilon=self.epsilon)

    def has_bias(self, name: str) -> bool:
        """Whether a part of that name has one."""
        return f"{name}.bias" in self.tensors

    def tensor(self, name: str) -> str:
        """A tensor in the weights' file; InvalidFile when it is not there."""
        if name not in self.tensors:
            raise InvalidFile(f"the model's weights have no {name}; fetch the model again")
        return self.graph.stored(self.tensors[name])
