"""Open an encoder by name: what fetches, converts and reads models is imported when it is needed, not before."""

from __future__ import annotations

from pathlib import Path

from incdsi.text.encoders.protocol import Encoder


def load_encoder(name: str | Path | None = None) -> Encoder:
    """Load an encoder: a folder, a wheel, a model's name, `http://...#MODEL`, or None for all-MiniLM-L6-v2.

    What is not ONNX yet is written as such once, into the user's cache. That needs no torch for models in
    `families.FAMILIES`; any other needs the extra `train` (MissingExtra). Raises ModelNotFound when there is none.
    """
    from incdsi.text.encoders import locate

    return locate.located(name)


def as_encoder(encoder: Encoder | str | Path | None, *, trainable: bool = False) -> Encoder:
    """The encoder itself, or the one under that name or in that folder; the default one for None."""
    if encoder is not None and not isinstance(encoder, str | Path):
        return encoder
    if not trainable:
        return load_encoder(encoder)
    from incdsi.text.encoders.locate import load_torch_encoder

    return load_torch_encoder(encoder)
