"""Real ONNX encoders of a few kilobytes, made without torch: the mean of a random vector a token, of unit length."""

from __future__ import annotations

import hashlib
import string
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from incdsi.text.encoders.manifest import GRAPH, TOKENIZER, Manifest, file_sha256, write_manifest
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from tests.index.index_samples import WORDS


def tiny_model(folder: Path, *, seed: int = 0, dimension: int = 24) -> OnnxEncoder:
    """An encoder in a new folder; another seed is another function."""
    folder.mkdir(parents=True)
    letters = [*string.digits, *string.ascii_letters, *string.punctuation]
    vocabulary = ["[UNK]", *WORDS, *letters, *(f"##{letter}" for letter in letters)]
    tokenizer = Tokenizer(models.WordPiece({token: id for id, token in enumerate(vocabulary)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.save(str(folder / TOKENIZER))
    (folder / GRAPH).write_bytes(_graph(np.random.default_rng(seed).standard_normal((len(vocabulary), dimension))))
    files = {name: file_sha256(folder / name) for name in (GRAPH, TOKENIZER)}
    manifest = Manifest(
        dimension=dimension,
        pooling="mean",
        normalise=True,
        max_length=64,
        pad_id=0,
        prompt="",
        fingerprint=hashlib.sha256(files[GRAPH].encode()).hexdigest(),
        precision="float32",
        agreement={},
        files=files,
    )
    write_manifest(folder, manifest)
    return OnnxEncoder(folder)


def _graph(table: np.ndarray) -> bytes:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),  # (b, length, h)
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["column"]),
        helper.make_node("Mul", ["tokens", "column"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "middle"], ["sum"], keepdims=0),
        helper.make_node("Add", ["sum", "little"], ["never zero"]),
        helper.make_node("LpNormalization", ["never zero"], ["embeddings"], axis=1, p=2),
    ]
    constants = {
        "table": table.astype(np.float32),
        "last": np.array([2]),
        "middle": np.array([1]),
        "little": np.full(table.shape[1], 1e-6, dtype=np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "tiny",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "length"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("embeddings", TensorProto.FLOAT, ["b", table.shape[1]])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())
