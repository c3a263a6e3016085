"""Which function an encoder computes, as one hash: the same for torch and for ONNX."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

# What the weights do not show but the function depends on.
ARCHITECTURE = ("model_type", "hidden_act", "activation", "num_attention_heads", "n_heads", "layer_norm_eps")

Weight = tuple[str, str, tuple[int, ...], Any]  # name, torch's name of its dtype, shape, bytes


def fingerprint(settings: Mapping[str, Any], tokenizer: str, weights: Iterable[Weight]) -> str:
    """sha256 over settings, tokenizer and weights in the order of their names."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(tokenizer.encode())
    for name, dtype, shape, content in sorted(weights, key=lambda weight: weight[0]):
        digest.update(f"{name} {dtype} {shape}".encode())
        digest.update(content)
    return digest.hexdigest()


def canonical_tokenizer(state: str) -> str:
    """A tokenizer's JSON with sorted keys, without the padding and truncation of the moment."""
    return json.dumps({**json.loads(state), "padding": None, "truncation": None}, sort_keys=True, ensure_ascii=False)
