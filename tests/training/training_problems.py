"""Small problems that training can solve and its start cannot, and a small encoder to train."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from incdsi.documents import Document
from incdsi.training.pairs import EmbeddedPairs

if TYPE_CHECKING:
    from incdsi.text.encoders.torch_encoder import TorchEncoder

WORDS = [f"{first}{second}" for first in ("ka", "lo", "mi", "nu", "pe", "ra") for second in "bdfgklmnst"]


@dataclass(frozen=True)
class Synthetic:
    """Documents whose queries lie off their text's embedding."""

    text: NDArray[np.float32]
    training: EmbeddedPairs
    held_out: EmbeddedPairs


def unit(array: NDArray[np.float64]) -> NDArray[np.float32]:
    return (array / np.linalg.norm(array, axis=1, keepdims=True)).astype(np.float32)


def synthetic(documents: int = 60, dimension: int = 16, queries: int = 6, seed: int = 0) -> Synthetic:
    draw = np.random.default_rng(seed)
    centres = draw.standard_normal((documents, dimension))
    text = unit(centres + 1.2 * draw.standard_normal(centres.shape))

    def pairs(each: int) -> EmbeddedPairs:
        owners = np.repeat(np.arange(documents), each)
        noise = draw.standard_normal((len(owners), dimension))
        texts = tuple(f"query {place}" for place in range(len(owners)))
        return EmbeddedPairs(texts=texts, owners=owners, embeddings=unit(centres[owners] + 0.5 * noise))

    return Synthetic(text=text, training=pairs(queries), held_out=pairs(2))


def corpus(count: int = 12, seed: int = 0) -> tuple[list[Document], dict[str, list[str]]]:
    """Documents of twelve words and, for each, five queries of four of them."""
    draw = np.random.default_rng(seed)
    documents, queries = [], {}
    for number in range(count):
        words = list(draw.choice(WORDS, size=12, replace=False))
        documents.append(Document(id=f"doc-{number}", text=" ".join(words)))
        queries[f"doc-{number}"] = [" ".join(draw.choice(words, size=4, replace=False)) for _ in range(5)]
    return documents, queries


def tiny_encoder(folder: Path, *, dropout: float = 0.0) -> TorchEncoder:
    """A real sentence-transformers BERT of one layer, width 16, mean pooling, unit-norm output."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    from incdsi.text.encoders.torch_encoder import TorchEncoder

    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    (folder / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    with torch.random.fork_rng():
        torch.manual_seed(7)
        model = BertModel(
            BertConfig(
                vocab_size=len(vocabulary),
                hidden_size=16,
                num_hidden_layers=1,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=32,
                hidden_dropout_prob=dropout,
                attention_probs_dropout_prob=dropout,
                initializer_range=0.5,
            )
        )
    model.save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    transformer = Transformer(str(folder), max_seq_length=32)
    modules = [transformer, Pooling(16, pooling_mode="mean"), Normalize()]
    return TorchEncoder(SentenceTransformer(modules=modules, device="cpu"))


def curve(epochs: object) -> str:
    """A run's epochs as text, exact to the bit."""
    from dataclasses import asdict

    return json.dumps([asdict(epoch) for epoch in epochs])  # type: ignore[attr-defined]
