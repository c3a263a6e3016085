"""From a model's safetensors to a `model/` folder, without torch: the graph refers into the weights' own file."""

from __future__ import annotations

import shutil
from pathlib import Path

from incdsi.durable import link_or_copy
from incdsi.text.encoders.bert import Bert
from incdsi.text.encoders.graph import Graph
from incdsi.text.encoders.heads import embedding
from incdsi.text.encoders.manifest import (
    GRAPH,
    PLAIN,
    STATES,
    TOKENIZER,
    WEIGHTS,
    Manifest,
    digests,
    file_checksum,
    file_sha256,
    write_manifest,
)
from incdsi.text.encoders.modernbert import ModernBert
from incdsi.text.encoders.sentence_model import SentenceModel

INPUTS = ("input_ids", "attention_mask")
FILES = (GRAPH, TOKENIZER, WEIGHTS)


def tells_states(model: SentenceModel) -> bool:
    """Whether its graph gives token states as well: they are all that an embedding is made of."""
    return model.pooling == "mean" and all(module.kind in PLAIN for module in model.modules)


def write_onnx(model: SentenceModel, fingerprint: str, folder: Path, *, link: bool) -> None:
    """Fill an empty folder; `link` gives the weights a second name in it, where that can be, instead of a copy.

    Raises MissingExtra for a model that needs torch.
    """
    graph = Graph()
    kind = ModernBert if model.config["model_type"] == "modernbert" else Bert
    vectors = kind(graph, model.config, model.tensors, model.width).token_vectors(*INPUTS)
    output, dimension = embedding(graph, model, vectors, INPUTS[1])
    outputs: dict[str, tuple[str | int, ...]] = {output: ("batch", dimension)}
    if tells_states(model):
        outputs[graph.named(STATES, vectors)] = ("batch", "length", dimension)
    (folder / GRAPH).write_bytes(graph.serialised(INPUTS, outputs))
    (folder / TOKENIZER).write_text(model.tokenizer, encoding="utf-8")
    (link_or_copy if link else shutil.copyfile)(model.weights, folder / WEIGHTS)
    manifest = Manifest(
        dimension=dimension,
        pooling=model.pooling,
        normalise=model.normalise,
        max_length=model.max_length,
        pad_id=model.pad_id,
        prompt=model.prompts.query,
        document_prompt=model.prompts.document,
        fingerprint=fingerprint,
        precision="float32",
        agreement={},
        files=digests(folder, FILES, file_sha256),
        checksums=digests(folder, FILES, file_checksum),
    )
    write_manifest(folder, manifest)
