"""From the torch encoder to a `model/` folder that needs no torch."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import hashlib
import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from incdsi.durable import appearing_folder
from incdsi.errors import InvalidInput, MissingExtra
from incdsi.text.encoders.manifest import (
    GRAPH,
    PLAIN,
    STATES,
    TOKENIZER,
    Manifest,
    digests,
    file_checksum,
    file_sha256,
    write_manifest,
)
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.torch_encoder import TorchEncoder, tokenizer_json

logger = logging.getLogger("incdsi")

try:
    import onnxscript  # noqa: F401  (torch.onnx uses it)
    import torch
except ImportError as error:
    raise MissingExtra(
        f"exporting needs torch, onnx and onnxscript, and {error.name} cannot be imported; "
        "run: pip install 'incdsi[train]'"
    ) from error

AGREEMENT = 0.9999
LARGEST = 1_900_000_000  # bytes: one ONNX file ends at 2 GB
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
FILES = (GRAPH, TOKENIZER)
SAMPLES = (
    "",
    " ",
    "?",
    "a",
    "who won the 1966 world cup",
    "WATERPROOF Hiking Boots, size 42/43",
    "Straße, naïve café, Ωμέγα, Привет, 日本語の文章, עברית, 한국어",
    "🥾 emoji 👩🏽‍🚀 title ✅",
    "def f(x):\n    return x ** 2  # a comment\n",
    "x" * 500,
    "The river rises in the mountains and flows to the sea. " * 8,
    " ".join(f"word{i}" for i in range(2000)),
)


def export_onnx(encoder: TorchEncoder, folder: str | Path, *, quantise: bool = False) -> OnnxEncoder:
    """Write the encoder as ONNX and return it opened; the folder appears complete or not at all.

    The float32 export agrees with torch (cosine at least 0.9999 on the samples) and keeps the
    fingerprint, or is refused. `quantise` gives int8, another function with another fingerprint: its
    loss is what `manifest.agreement` says.
    """
    folder = Path(folder)
    with appearing_folder(folder, replace=True) as unfinished:
        _write(encoder, unfinished, quantise)
        unfinished.chmod(0o755)
    return OnnxEncoder(folder)


def _write(encoder: TorchEncoder, folder: Path, quantise: bool) -> None:
    _write_graph(encoder, folder / GRAPH)
    if quantise:
        _quantise(folder / GRAPH)
    (folder / TOKENIZER).write_text(tokenizer_json(encoder.model), encoding="utf-8")
    fingerprint = encoder.fingerprint
    if quantise:
        fingerprint = hashlib.sha256(f"{fingerprint} int8 {file_sha256(folder / GRAPH)}".encode()).hexdigest()
    manifest = Manifest(
        dimension=encoder.dimension,
        pooling=encoder.pooling,
        normalise=encoder.normalise,
        max_length=encoder.max_length,
        pad_id=int(encoder.model.tokenizer.pad_token_id or 0),
        prompt=encoder.prompts.query,
        document_prompt=encoder.document_prompt,
        fingerprint=fingerprint,
        precision="int8" if quantise else "float32",
        agreement={},
        files=digests(folder, FILES, file_sha256),
        checksums=digests(folder, FILES, file_checksum),
    )
    write_manifest(folder, manifest)
    agreement = _measured(encoder, OnnxEncoder(folder))
    if not quantise and not agreement["lowest"] >= AGREEMENT:
        raise InvalidInput(
            f"the ONNX export differs from torch: a cosine of {agreement['lowest']:.6f}, below {AGREEMENT}; "
            "serve this model with the torch encoder"
        )
    if quantise:
        logger.warning(
            "int8 is another encoder: its cosine to the float32 one is %.3f on average and %.3f at worst, on %d texts",
            agreement["mean"],
            agreement["lowest"],
            len(SAMPLES),
        )
    write_manifest(folder, dataclasses.replace(manifest, agreement=agreement))


class _Graph(torch.nn.Module):
    """All modules of the model as one function of tensors: (b, length) each -> (b, h), and token states if asked."""

    def __init__(self, model: torch.nn.Module, inputs: tuple[str, ...], states: bool) -> None:
        super().__init__()
        self.model = model
        self.inputs = inputs
        self.states = states

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        features: dict[str, Any] = dict(zip(self.inputs, tensors, strict=True))
        for module in self.model.children():
            features = module(features)
        embedding: torch.Tensor = features["sentence_embedding"]
        return (embedding, features["token_embeddings"].clone()) if self.states else (embedding,)


def _write_graph(encoder: TorchEncoder, path: Path) -> None:
    weights = sum(4 * parameter.numel() for parameter in encoder.model.parameters())
    if weights > LARGEST:
        raise InvalidInput(
            f"the model has {weights} bytes as float32, and one ONNX file holds {LARGEST}; use the torch encoder"
        )
    model = copy.deepcopy(encoder.model).to("cpu").float().eval()
    # Plain attention: the export of the fused one carries NaN guards and is slower.
    model[0].auto_model.set_attn_implementation("eager")
    inputs = tuple(name for name in INPUTS if name in _features(model))
    states = encoder.pooling == "mean" and all(type(module).__name__ in PLAIN for module in list(model)[1:])
    example = tuple(torch.ones((2, 9), dtype=torch.long) for _ in inputs)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    with _quiet(), torch.inference_mode():
        torch.onnx.export(
            _Graph(model, inputs, states),
            example,
            str(path),
            input_names=list(inputs),
            output_names=["sentence_embedding", *([STATES] if states else [])],
            dynamic_shapes=(tuple(axes for _ in inputs),),
            dynamo=True,
            external_data=False,
            verbose=False,
        )


def _features(model: Any) -> dict[str, Any]:
    """What the model's own preparation makes of a text."""
    prepare = getattr(model, "preprocess", None) or model.tokenize
    features: dict[str, Any] = prepare(["a"])
    return features


def _quantise(path: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with _quiet():
        quantize_dynamic(str(path), str(path), weight_type=QuantType.QInt8)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporters' remarks on their own internals: the library never prints."""
    previous = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(previous)


def _measured(encoder: TorchEncoder, exported: OnnxEncoder) -> dict[str, float]:
    """Lowest and mean cosine on the samples, each alone and all in one batch."""
    wanted = np.tile(encoder.encode(SAMPLES), (2, 1)).astype(np.float64)
    alone = np.concatenate([exported.encode([text]) for text in SAMPLES])
    found = np.concatenate([exported.encode(SAMPLES), alone]).astype(np.float64)
    lengths = np.linalg.norm(wanted, axis=1) * np.linalg.norm(found, axis=1)
    cosines = (wanted * found).sum(axis=1) / np.maximum(lengths, np.finfo(np.float64).tiny)
    return {"lowest": float(cosines.min()), "mean": float(cosines.mean())}
