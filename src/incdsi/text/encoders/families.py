"""The transformers whose graph can be written without torch: what their settings and their words are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from incdsi.text.encoders.graph import Graph

FULL, LOCAL = "full_attention", "sliding_attention"  # of ModernBERT's layers
ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {
    "gelu": lambda graph, x: graph.node("Gelu", x),
    "gelu_new": lambda graph, x: graph.node("Gelu", x, approximate="tanh"),
    "gelu_pytorch_tanh": lambda graph, x: graph.node("Gelu", x, approximate="tanh"),
    "relu": lambda graph, x: graph.node("Relu", x),
    "silu": lambda graph, x: graph.node("Mul", x, graph.node("Sigmoid", x)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """`prefix` is that of the encoder within a larger model, such as one with a language-model head."""

    prefix: str
    words: str
    activation: str
    heads: str
    count: str
    epsilon: str
    defaults: Mapping[str, Any]
    completed: Callable[[dict[str, Any]], dict[str, Any]] = dict  # what follows from other settings


def _modern(config: dict[str, Any]) -> dict[str, Any]:
    """Each layer's kind of attention, and how each kind turns its positions, also where a first release says it."""
    every = config["global_attn_every_n_layers"]
    counted = [LOCAL if number % every else FULL for number in range(config["num_hidden_layers"])]
    given = config.get("rope_parameters") or {}
    thetas = {FULL: config["global_rope_theta"], LOCAL: config["local_rope_theta"]}
    turns = {
        kind: {"rope_type": "default", "rope_theta": theta, **(given.get(kind) or {})} for kind, theta in thetas.items()
    }
    return {**config, "layer_types": config.get("layer_types") or counted, "rope_parameters": turns}


_BERT = Family(
    prefix="bert.",
    words="embeddings.word_embeddings",
    activation="hidden_act",
    heads="num_attention_heads",
    count="num_hidden_layers",
    epsilon="layer_norm_eps",
    defaults={"hidden_act": "gelu", "num_attention_heads": 12, "num_hidden_layers": 12, "layer_norm_eps": 1e-12},
)
FAMILIES = {
    "bert": _BERT,
    "roberta": replace(_BERT, prefix="roberta."),
    "xlm-roberta": replace(_BERT, prefix="roberta."),
    "distilbert": replace(
        _BERT,
        prefix="distilbert.",
        activation="activation",
        heads="n_heads",
        count="n_layers",
        defaults={"activation": "gelu", "n_heads": 12, "n_layers": 6},
    ),
    "modernbert": Family(
        prefix="model.",
        words="embeddings.tok_embeddings",
        activation="hidden_activation",
        heads="num_attention_heads",
        count="num_hidden_layers",
        epsilon="norm_eps",
        completed=_modern,
        defaults={
            "hidden_activation": "gelu",
            "num_attention_heads": 12,
            "num_hidden_layers": 22,
            "norm_eps": 1e-5,
            "local_attention": 128,
            "global_attn_every_n_layers": 3,
            "global_rope_theta": 160_000.0,
            "local_rope_theta": 10_000.0,
        },
    ),
}
