"""Frozen query encoders: text to embeddings, each with a fingerprint.

`load_encoder` is the one door. What it returns runs without torch once the model lies as ONNX;
`torch_encoder.TorchEncoder` (trainable) and `export.export_onnx` need the extra `train`.
"""

from incdsi.text.encoders.opening import as_encoder, load_encoder
from incdsi.text.encoders.protocol import Encoder, count_tokens, encode_each, for_documents, tokens_read

__all__ = ["Encoder", "as_encoder", "count_tokens", "encode_each", "for_documents", "load_encoder", "tokens_read"]
