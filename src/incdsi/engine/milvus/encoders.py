"""The encoder of an index on a server: named there by its fingerprint, kept by each client in its own cache."""

from __future__ import annotations

from pathlib import Path

from incdsi.engine.local import models
from incdsi.engine.settings import Settings
from incdsi.errors import EncoderMismatch, ModelNotFound
from incdsi.text.encoders import Encoder, as_encoder
from incdsi.text.encoders.cache import cache_folder


def kept_in() -> Path:
    """Where this client keeps the encoders of indexes on servers."""
    return cache_folder() / "milvus"


def keep(encoder: Encoder) -> None:
    """Keep an encoder for when the index is opened without one, if it can be kept."""
    if models.folder_name(encoder) is not None:
        kept_in().mkdir(parents=True, exist_ok=True)
        models.keeper(encoder)(kept_in())


def opened(address: object, settings: Settings, given: Encoder | str | Path | None) -> Encoder:
    """The encoder those settings mean: the caller's, one this client kept, or the default one, if it is that."""
    if given is None and settings.model is not None and (kept_in() / settings.model).is_dir():
        return models.open_kept(kept_in() / settings.model)
    encoder = _default(address, settings) if given is None else as_encoder(given)
    if encoder.fingerprint != settings.fingerprint:
        raise EncoderMismatch(
            f"expected the encoder {settings.fingerprint[:12]} that {address} was built with, "
            f"found {encoder.fingerprint[:12]}; open it with that one, or build a new index"
        )
    keep(encoder)
    return encoder


def _default(address: object, settings: Settings) -> Encoder:
    try:
        encoder = as_encoder(None)
    except ModelNotFound:
        encoder = None
    if encoder is None or encoder.fingerprint != settings.fingerprint:
        raise ModelNotFound(
            f"this machine has not got the encoder {settings.fingerprint[:12]} that {address} was built with; "
            "open it once with encoder=... (--encoder), and it is kept here"
        )
    return encoder
