"""ModernBERT as an ONNX graph: rotary positions, gated layers, and attention that is local in most of them."""

from __future__ import annotations

import numpy as np

from incdsi.text.encoders.families import FULL, LOCAL
from incdsi.text.encoders.graph import FLOAT
from incdsi.text.encoders.transformer import LEAST, Transformer


class ModernBert(Transformer):
    """Layers that normalise before each part, the first excepted."""

    def token_vectors(self, ids: str, mask: str) -> str:
        graph = self.graph
        length = graph.node(
            "Squeeze", graph.node("Slice", graph.node("Shape", ids), graph.integers(1), graph.integers(2))
        )
        zero, one = (graph.constant(np.array(value, dtype=np.int64)) for value in (0, 1))
        places = graph.node("Range", zero, length, one)
        everywhere = self.bias(mask)
        biases = {FULL: everywhere, LOCAL: graph.node("Min", everywhere, self._window(places))}
        turns = {kind: self._turns(places, kind) for kind in biases}
        words = graph.node("Gather", self.tensor(f"{self.family.words}.weight"), ids)
        hidden = self.norm(words, "embeddings.norm")
        for number, kind in enumerate(self.config["layer_types"]):
            hidden = self._layer(hidden, biases[kind], turns[kind], number)
        return self.norm(hidden, "final_norm")

    def _window(self, places: str) -> str:
        """(length, length): nothing within half the window of a token, the least number beyond."""
        graph = self.graph
        rows, columns = (graph.node("Unsqueeze", places, graph.integers(axis)) for axis in (1, 0))
        distance = graph.node("Abs", graph.node("Sub", rows, columns))
        beyond = graph.node("Greater", distance, graph.integers(int(self.config["local_attention"]) // 2))
        return graph.node("Where", beyond, graph.number(LEAST), graph.number(0.0))

    def _turns(self, places: str, kind: str) -> tuple[str, str]:
        """(length, d) cosines and sines of the angles by which queries and keys are turned."""
        graph, theta = self.graph, float(self.config["rope_parameters"][kind]["rope_theta"])
        speeds = 1.0 / theta ** (np.arange(0, self.size, 2, dtype=np.float32) / self.size)
        column = graph.node("Unsqueeze", graph.node("Cast", places, to=FLOAT), graph.integers(1))
        angles = graph.node("Mul", column, graph.constant(np.tile(speeds, 2).astype(np.float32)))
        return graph.node("Cos", angles), graph.node("Sin", angles)

    def _layer(self, hidden: str, bias: str, turns: tuple[str, str], number: int) -> str:
        graph, layer = self.graph, f"layers.{number}"
        seen = self.norm(hidden, f"{layer}.attn_norm") if number else hidden
        query, key, value = self._parts(seen, f"{layer}.attn.Wqkv")
        key = graph.node("Transpose", self._turned(key, turns), perm=(0, 1, 3, 2))
        attended = self.attended(self._turned(query, turns), key, value, bias)
        hidden = graph.node("Add", hidden, self.linear(attended, f"{layer}.attn.Wo"))
        gated = self.linear(self.norm(hidden, f"{layer}.mlp_norm"), f"{layer}.mlp.Wi")
        inner, gate = self._halves(gated)
        outer = self.linear(graph.node("Mul", self.activated(inner), gate), f"{layer}.mlp.Wo")
        return graph.node("Add", hidden, outer)

    def _parts(self, hidden: str, name: str) -> list[str]:
        """Queries, keys and values, (b, heads, length, d) each."""
        graph = self.graph
        shaped = graph.node("Reshape", self.linear(hidden, name), graph.integers(0, 0, 3, self.heads, self.size))
        together = graph.node("Transpose", shaped, perm=(2, 0, 3, 1, 4))
        return [graph.node("Gather", together, graph.constant(np.array(place, dtype=np.int64))) for place in range(3)]

    def _turned(self, x: str, turns: tuple[str, str]) -> str:
        graph, (cosines, sines) = self.graph, turns
        first, second = self._halves(x)
        across = graph.node("Concat", graph.node("Neg", second), first, axis=-1)
        return graph.node("Add", graph.node("Mul", x, cosines), graph.node("Mul", across, sines))

    def _halves(self, x: str) -> tuple[str, str]:
        """The first and the second half of the last axis."""
        graph, last = self.graph, self.graph.integers(-1)
        middle = graph.node("Div", graph.node("Shape", x, start=-1), graph.integers(2))
        first = graph.node("Slice", x, graph.integers(0), middle, last)
        return first, graph.node("Slice", x, middle, graph.node("Shape", x, start=-1), last)
