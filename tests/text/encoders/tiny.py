"""Tiny models of every family, as sentence-transformers writes them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

FAMILIES = ("bert", "roberta", "xlm-roberta", "distilbert", "modernbert")
SIZES = {"vocab_size": 215, "max_position_embeddings": 66, "pad_token_id": 0, "initializer_range": 0.5}


def config(family: str) -> Any:
    """Two layers of h = 16, with activations and precisions that differ from family to family."""
    from transformers import BertConfig, DistilBertConfig, ModernBertConfig, RobertaConfig, XLMRobertaConfig

    if family == "distilbert":
        return DistilBertConfig(**SIZES, dim=16, n_layers=2, n_heads=4, hidden_dim=32, activation="relu")
    if family == "modernbert":
        sizes = {"hidden_size": 16, "num_hidden_layers": 4, "num_attention_heads": 2, "intermediate_size": 24}
        return ModernBertConfig(**SIZES, **sizes, local_attention=6, eos_token_id=3, bos_token_id=2, cls_token_id=2)
    kinds = {"bert": BertConfig, "roberta": RobertaConfig, "xlm-roberta": XLMRobertaConfig}
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 32}
    extras = {"bert": {"hidden_act": "gelu_new"}, "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5}}
    return kinds[family](**SIZES, **sizes, **extras.get(family, {}))


def save(folder: Path, tokenizer: Path, family: str = "bert", head: tuple[Any, ...] = (), half: str = "") -> Path:
    """A sentence-transformer with random weights in `folder`; `head` is what comes behind the transformer."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import AutoModel

    plain = folder / "plain"
    torch.manual_seed(1)
    model = AutoModel.from_config(config(family))
    (model.to(getattr(torch, half)) if half else model).save_pretrained(plain)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, plain)
    modules = head or (Pooling(16), Normalize())
    SentenceTransformer(modules=[Transformer(str(plain)), *modules], device="cpu").save(str(folder / "model"))
    return folder / "model"


def change(path: Path, **values: Any) -> None:
    """Other values in a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
