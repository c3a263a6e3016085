"""BERT and its family as an ONNX graph: token ids and mask -> token vectors.

Every operator is a plain one of ONNX; onnxruntime fuses them when it opens the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from incdsi.errors import InvalidFile
from incdsi.text.encoders.graph import FLOAT, INT64, Graph
from incdsi.text.encoders.weights import Tensor

LEAST = float(np.finfo(np.float32).min)
ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "gelu": lambda graph, x: graph.node("Gelu", x),
    "gelu_new": lambda graph, x: graph.node("Gelu", x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda graph, x: graph.node("Gelu", x, approximate="tanh"),
    "relu": lambda graph, x: graph.node("Relu", x),
    "silu": lambda graph, x: graph.node("Mul", x, graph.node("Sigmoid", x)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What a family calls its settings, with their defaults, and its parts in `layers`.{number}."""

    prefix: str  # of the encoder within a larger model, such as one with a language-model head
    defaults: Mapping[str, Any]
    activation: str
    heads: str
    count: str
    layers: str
    query: str
    key: str
    value: str
    attention_output: str
    attention_norm: str
    intermediate: str
    output: str
    output_norm: str


BERT = Names(
    prefix="bert.",
    defaults={"hidden_act": "gelu", "num_attention_heads": 12, "num_hidden_layers": 12, "layer_norm_eps": 1e-12},
    activation="hidden_act",
    heads="num_attention_heads",
    count="num_hidden_layers",
    layers="encoder.layer",
    query="attention.self.query",
    key="attention.self.key",
    value="attention.self.value",
    attention_output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    intermediate="intermediate.dense",
    output="output.dense",
    output_norm="output.LayerNorm",
)
FAMILIES = {
    "bert": BERT,
    "roberta": replace(BERT, prefix="roberta."),
    "xlm-roberta": replace(BERT, prefix="roberta."),
    "distilbert": Names(
        prefix="distilbert.",
        defaults={"activation": "gelu", "n_heads": 12, "n_layers": 6},
        activation="activation",
        heads="n_heads",
        count="n_layers",
        layers="transformer.layer",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_output="attention.out_lin",
        attention_norm="sa_layer_norm",
        intermediate="ffn.lin1",
        output="ffn.lin2",
        output_norm="output_layer_norm",
    ),
}


class Bert:
    """One encoder of the family, from its config, its tensors by name, and h, their width."""

    def __init__(self, graph: Graph, config: Mapping[str, Any], tensors: Mapping[str, Tensor], width: int) -> None:
        self.graph = graph
        self.config = config
        self.tensors = tensors
        self.width = width
        self.names = FAMILIES[config["model_type"]]
        self.heads = config[self.names.heads]
        self.epsilon = float(config.get("layer_norm_eps", 1e-12))

    def token_vectors(self, ids: str, mask: str) -> str:
        """(b, length) ids and mask, both int64 -> (b, length, h)."""
        graph = self.graph
        absent = graph.node("Sub", graph.number(1.0), graph.node("Cast", mask, to=FLOAT))
        bias = graph.node("Mul", graph.node("Unsqueeze", absent, graph.integers(1, 2)), graph.number(LEAST))
        hidden = self._embeddings(ids)
        for number in range(self.config[self.names.count]):
            hidden = self._layer(hidden, bias, f"{self.names.layers}.{number}")
        return hidden

    def _embeddings(self, ids: str) -> str:
        graph = self.graph
        words = graph.node("Gather", self._tensor("embeddings.word_embeddings.weight"), ids)
        total = graph.node("Add", words, self._positions(ids))
        if "embeddings.token_type_embeddings.weight" in self.tensors:  # every token is of the first type
            kinds = self._tensor("embeddings.token_type_embeddings.weight")
            total = graph.node("Add", total, graph.node("Gather", kinds, graph.integers(0)))
        return self._norm(total, "embeddings.LayerNorm")

    def _positions(self, ids: str) -> str:
        """(length, h) counted from 0, or (b, length, h) counted from behind the padding id, as RoBERTa does."""
        graph = self.graph
        table = self._tensor("embeddings.position_embeddings.weight")
        if "roberta" not in self.config["model_type"]:
            length = graph.node("Slice", graph.node("Shape", ids), graph.integers(1), graph.integers(2))
            return graph.node("Slice", table, graph.integers(0), length, graph.integers(0))
        padding = graph.integers(int(self.config.get("pad_token_id", 1)))
        token = graph.node("Cast", graph.node("Not", graph.node("Equal", ids, padding)), to=INT64)
        count = graph.node("Mul", graph.node("CumSum", token, graph.integers(1)), token)
        return graph.node("Gather", table, graph.node("Add", count, padding))

    def _layer(self, hidden: str, bias: str, layer: str) -> str:
        names = self.names
        attended = self._attention(hidden, bias, layer)
        hidden = self._norm(
            self.graph.node("Add", self._linear(attended, f"{layer}.{names.attention_output}"), hidden),
            f"{layer}.{names.attention_norm}",
        )
        activation = ACTIVATIONS[self.config[names.activation]]
        inner = activation(self.graph, self._linear(hidden, f"{layer}.{names.intermediate}"))
        return self._norm(
            self.graph.node("Add", self._linear(inner, f"{layer}.{names.output}"), hidden),
            f"{layer}.{names.output_norm}",
        )

    def _attention(self, hidden: str, bias: str, layer: str) -> str:
        graph, names = self.graph, self.names
        query = self._split(hidden, f"{layer}.{names.query}", (0, 2, 1, 3))  # (b, heads, length, d)
        key = self._split(hidden, f"{layer}.{names.key}", (0, 2, 3, 1))  # (b, heads, d, length)
        value = self._split(hidden, f"{layer}.{names.value}", (0, 2, 1, 3))
        scale = graph.number(math.sqrt(self.width // self.heads))
        scores = graph.node("Add", graph.node("Div", graph.node("MatMul", query, key), scale), bias)
        mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
        return graph.node(
            "Reshape", graph.node("Transpose", mixed, perm=(0, 2, 1, 3)), graph.integers(0, 0, self.width)
        )

    def _split(self, hidden: str, name: str, order: tuple[int, ...]) -> str:
        graph = self.graph
        shape = graph.integers(0, 0, self.heads, self.width // self.heads)
        return graph.node("Transpose", graph.node("Reshape", self._linear(hidden, name), shape), perm=order)

    def _linear(self, x: str, name: str) -> str:
        weight = self.graph.node("Transpose", self._tensor(f"{name}.weight"), perm=(1, 0))
        return self.graph.node("Add", self.graph.node("MatMul", x, weight), self._tensor(f"{name}.bias"))

    def _norm(self, x: str, name: str) -> str:
        weight, bias = self._tensor(f"{name}.weight"), self._tensor(f"{name}.bias")
        return self.graph.node("LayerNormalization", x, weight, bias, axis=-1, epsilon=self.epsilon)

    def _tensor(self, name: str) -> str:
        if name not in self.tensors:
            raise InvalidFile(f"the model's weights have no {name}; fetch the model again")
        return self.graph.stored(self.tensors[name])
