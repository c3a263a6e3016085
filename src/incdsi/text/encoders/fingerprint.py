"""Which function an encoder computes, as one hash: the same for torch and for ONNX."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

# What the weights do not show but the function depends on.
ARCHITECTURE = ("model_type", "hidden_act", "activation", "num_attention_heads", "n_heads", "layer_norm_eps")
MODERN = ("hidden_activation", "norm_eps", "local_attention", "layer_types", "rope_parameters")
QUERY_NAMES, DOCUMENT_NAMES = ("query",), ("document", "passage", "corpus")

Weight = tuple[str, str, tuple[int, ...], Any]  # name, torch's name of its dtype, shape, bytes


def fingerprint(settings: Mapping[str, Any], tokenizer: str, weights: Iterable[Weight]) -> str:
    """sha256 over settings, tokenizer and weights in the order of their names."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    digest.update(tokenizer.encode())
    for name, dtype, shape, content in sorted(weights, key=lambda weight: weight[0]):
        digest.update(f"{name} {dtype} {shape}".encode())
        digest.update(content)
    return digest.hexdigest()


def architecture(config: Mapping[str, Any]) -> dict[str, Any]:
    """What of a transformer's config goes into its fingerprint."""
    names = (*ARCHITECTURE, *(MODERN if config.get("model_type") == "modernbert" else ()))
    return {name: config[name] for name in names if config.get(name) is not None}


def canonical_tokenizer(state: str) -> str:
    """A tokenizer's JSON with sorted keys, without the padding and truncation of the moment."""
    return json.dumps({**json.loads(state), "padding": None, "truncation": None}, sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The words put before a query and before a document."""

    query: str = ""
    document: str = ""

    @classmethod
    def of(cls, prompts: Mapping[str, str | None], default: str | None) -> Self:
        """From sentence-transformers' prompts by name; the default one stands in, unless it is for the other kind."""
        return cls(*(_prompt(prompts, default, names) for names in (QUERY_NAMES, DOCUMENT_NAMES)))

    def settings(self) -> dict[str, str]:
        """As settings of a fingerprint; a document's only where it differs."""
        return {"prompt": self.query} | ({} if self.document == self.query else {"document_prompt": self.document})


def _prompt(prompts: Mapping[str, str | None], default: str | None, names: Sequence[str]) -> str:
    found = next((prompts[name] for name in names if prompts.get(name)), None)
    others = {*QUERY_NAMES, *DOCUMENT_NAMES} - {*names}
    return found or (prompts.get(default or "") if default not in others else None) or ""
