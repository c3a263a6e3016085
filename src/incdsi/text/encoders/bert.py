"""BERT, RoBERTa and DistilBERT as an ONNX graph."""

from __future__ import annotations

from dataclasses import dataclass

from incdsi.text.encoders.graph import INT64
from incdsi.text.encoders.transformer import Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What the parts of a layer are called, and where the layers are."""

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
DISTILBERT = Names(
    layers="transformer.layer",
    query="attention.q_lin",
    key="attention.k_lin",
    value="attention.v_lin",
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    intermediate="ffn.lin1",
    output="ffn.lin2",
    output_norm="output_layer_norm",
)


class Bert(Transformer):
    """Embeddings with their positions, then layers that normalise after each part."""

    @property
    def names(self) -> Names:
        """Those of this model."""
        return DISTILBERT if self.config["model_type"] == "distilbert" else BERT

    def token_vectors(self, ids: str, mask: str) -> str:
        bias, hidden = self.bias(mask), self._embeddings(ids)
        for number in range(self.config[self.family.count]):
            hidden = self._layer(hidden, bias, f"{self.names.layers}.{number}")
        return hidden

    def _embeddings(self, ids: str) -> str:
        graph = self.graph
        words = graph.node("Gather", self.tensor(f"{self.family.words}.weight"), ids)
        total = graph.node("Add", words, self._positions(ids))
        if "embeddings.token_type_embeddings.weight" in self.tensors:  # every token is of the first type
            kinds = self.tensor("embeddings.token_type_embeddings.weight")
            total = graph.node("Add", total, graph.node("Gather", kinds, graph.integers(0)))
        return self.norm(total, "embeddings.LayerNorm")

    def _positions(self, ids: str) -> str:
        """(length, h) counted from 0, or (b, length, h) counted from behind the padding id, as RoBERTa does."""
        graph = self.graph
        table = self.tensor("embeddings.position_embeddings.weight")
        if "roberta" not in self.config["model_type"]:
            length = graph.node("Slice", graph.node("Shape", ids), graph.integers(1), graph.integers(2))
            return graph.node("Slice", table, graph.integers(0), length, graph.integers(0))
        padding = graph.integers(int(self.config.get("pad_token_id", 1)))
        token = graph.node("Cast", graph.node("Not", graph.node("Equal", ids, padding)), to=INT64)
        count = graph.node("Mul", graph.node("CumSum", token, graph.integers(1)), token)
        return graph.node("Gather", table, graph.node("Add", count, padding))

    def _layer(self, hidden: str, bias: str, layer: str) -> str:
        names = self.names
        query = self._split(hidden, f"{layer}.{names.query}", (0, 2, 1, 3))
        key = self._split(hidden, f"{layer}.{names.key}", (0, 2, 3, 1))
        value = self._split(hidden, f"{layer}.{names.value}", (0, 2, 1, 3))
        attended = self.linear(self.attended(query, key, value, bias), f"{layer}.{names.attention_output}")
        hidden = self.norm(self.graph.node("Add", attended, hidden), f"{layer}.{names.attention_norm}")
        inner = self.activated(self.linear(hidden, f"{layer}.{names.intermediate}"))
        outer = self.linear(inner, f"{layer}.{names.output}")
        return self.norm(self.graph.node("Add", outer, hidden), f"{layer}.{names.output_norm}")

    def _split(self, hidden: str, name: str, order: tuple[int, ...]) -> str:
        graph, shape = self.graph, self.graph.integers(0, 0, self.heads, self.size)
        return graph.node("Transpose", graph.node("Reshape", self.linear(hidden, name), shape), perm=order)
