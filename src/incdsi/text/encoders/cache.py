"""Models in the user's cache: a folder each, named by its fingerprint, shared by every index."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from incdsi.durable import appearing_file, appearing_folder
from incdsi.errors import InvalidFile, InvalidInput, ModelNotFound, UnsupportedFormat
from incdsi.text.encoders.convert import tells_states, write_onnx
from incdsi.text.encoders.manifest import add_checksums
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.text.encoders.sentence_model import SentenceModel, read_sentence_model


def cache_folder() -> Path:
    """Where models are kept: $INCDSI_MODELS, else incdsi/models in $XDG_CACHE_HOME or ~/.cache."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("INCDSI_MODELS") or Path(base) / "incdsi" / "models")


def named(name: str) -> OnnxEncoder | None:
    """The model last kept under this name, or None when it is missing, damaged or of another format."""
    try:
        return _kept(_pointer(name).read_text(encoding="utf-8").strip())
    except (OSError, UnicodeDecodeError):
        return None


def convert(folder: Path, *, link: bool, name: str | None = None) -> OnnxEncoder:
    """A folder's model as ONNX, from the cache or made there; `name` finds it again.

    `link` spares a copy of the weights: only for files that nobody rewrites in place. Where the cache cannot be
    written the model lives as long as the process. Raises what `read_sentence_model` and `write_onnx` raise.
    """
    model = read_sentence_model(folder)
    fingerprint = model.fingerprint
    found = _kept(fingerprint)
    if found is None or (tells_states(model) and not found.has_states):  # an older version's graph
        found = _made(model, fingerprint, link)
    if name is not None:
        with contextlib.suppress(OSError), appearing_file(_pointer(name)) as file:
            file.write(fingerprint.encode())
    return found


def _made(model: SentenceModel, fingerprint: str, link: bool) -> OnnxEncoder:
    folder = cache_folder() / fingerprint
    try:
        with appearing_folder(folder, replace=folder.exists()) as made:  # what is there is damaged or old
            write_onnx(model, fingerprint, made, link=link)
            made.chmod(0o755)
    except (OSError, InvalidInput) as error:
        found = _kept(fingerprint)
        if found is not None:  # another process was faster, and somebody may be reading its folder
            return found
        if not isinstance(error, OSError):
            raise
        folder = Path(tempfile.mkdtemp(prefix="incdsi-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        write_onnx(model, fingerprint, folder, link=link)
    return OnnxEncoder(folder)


def _kept(fingerprint: str) -> OnnxEncoder | None:
    try:
        encoder = OnnxEncoder(cache_folder() / fingerprint)
    except (OSError, InvalidFile, ModelNotFound, UnsupportedFormat):
        return None
    if encoder.fingerprint != fingerprint:
        return None
    if not encoder.manifest.checksums:
        with contextlib.suppress(OSError):
            add_checksums(encoder.folder, encoder.manifest)
    return encoder


def _pointer(name: str) -> Path:
    """A small file that holds the fingerprint of the model of that name."""
    return cache_folder() / f"{name.replace('/', '--')}.fingerprint"
