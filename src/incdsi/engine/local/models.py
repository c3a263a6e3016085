"""The frozen encoder inside an index's folder."""

from __future__ import annotations

import contextlib
import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from incdsi.durable import appearing_folder, copy_tree, fsync, link_or_copy
from incdsi.engine.settings import KEY, Settings
from incdsi.errors import EncoderMismatch, ModelNotFound
from incdsi.store import Store
from incdsi.text.encoders import Encoder, as_encoder
from incdsi.text.encoders.manifest import ENDPOINT
from incdsi.text.encoders.onnx_encoder import OnnxEncoder

MODELS = "model"
FILES = {"HttpEncoder": "http_encoder", "TorchEncoder": "torch_encoder"}
PART = ".part"  # half a model, on its way out


def folder_name(encoder: Encoder) -> str | None:
    """Where an index keeps this encoder; None for one of the caller's own that it cannot keep."""
    kept = isinstance(encoder, OnnxEncoder) or _is(encoder, "HttpEncoder") or _is(encoder, "TorchEncoder")
    return f"{MODELS}/{encoder.fingerprint[:16]}" if kept else None


def _is(encoder: Encoder, name: str) -> bool:
    """Whether it is one of that class, without importing what the class needs when nobody has."""
    module = sys.modules.get(f"incdsi.text.encoders.{FILES[name]}")
    return module is not None and isinstance(encoder, getattr(module, name))


def keeper(encoder: Encoder) -> Callable[[Path], None]:
    """A function that puts the encoder into an index's folder."""

    def keep(index_folder: Path) -> None:
        name = folder_name(encoder)
        if name is None:
            return
        (index_folder / MODELS).mkdir(exist_ok=True)
        fsync(index_folder)
        if not (index_folder / name).exists():
            _put(encoder, index_folder / name)
        # Settings that name it are about to be on the disk, whoever put it there.
        fsync(index_folder / MODELS)

    return keep


def _put(encoder: Encoder, folder: Path) -> None:
    """Return when the model is on the disk: settings that name it are about to be.

    Indexes share the bytes of a model in the cache, where files are replaced and never rewritten; their own names for
    them stay when the cache is emptied. Any other folder may be changed by its owner, and is copied.
    """
    if isinstance(encoder, OnnxEncoder):
        from incdsi.text.encoders.cache import cache_folder

        shared = encoder.folder.parent == cache_folder()
        with appearing_folder(folder) as unfinished:
            copy_tree(encoder.folder, unfinished, link_or_copy if shared else shutil.copyfile)
            unfinished.chmod(0o755)  # the index's own folder says who may read it
    elif _is(encoder, "HttpEncoder"):
        with appearing_folder(folder) as unfinished:
            encoder.save(unfinished)  # type: ignore[attr-defined]
            unfinished.chmod(0o755)
    else:
        importlib.import_module("incdsi.text.encoders.export").export_onnx(encoder, folder)


def remove_others(index_folder: Path, keep: str | None) -> None:
    """Remove every model, whole or half-copied, but the one that the settings name."""
    for folder in others(index_folder, keep):
        with contextlib.suppress(OSError):
            if folder.suffix != PART:  # half a model must not have a name that settings may come to again
                shutil.rmtree(_part(folder), ignore_errors=True)
                folder = folder.rename(_part(folder))
                fsync(index_folder / MODELS)
            shutil.rmtree(folder)


def _part(folder: Path) -> Path:
    return folder.with_name(folder.name + PART)


def others(index_folder: Path, keep: str | None) -> list[Path]:
    """The models in an index's folder that its settings do not name."""
    kept = None if keep is None else index_folder / keep
    return [path for path in (index_folder / MODELS).glob("*") if path != kept]


def settings_in(index_folder: Path) -> Settings:
    """What an index remembers about itself, without opening its encoder."""
    with Store.open(index_folder, writer=False) as store:
        return Settings.from_json(store.setting(KEY))


def open_kept(folder: Path, *, threads: int = 0) -> Encoder:
    """The encoder that an index keeps in this folder."""
    if not (folder / ENDPOINT).is_file():
        return OnnxEncoder(folder, threads=threads)
    from incdsi.text.encoders.http_encoder import HttpEncoder

    return HttpEncoder.open(folder)


def open_model(index_folder: Path, name: str | None, fingerprint: str, given: Encoder | str | Path | None) -> Encoder:
    """The encoder an index was built with: the caller's if it is the same, else the one it keeps."""
    if given is None and name is None:
        raise ModelNotFound(
            f"expected the encoder that {index_folder} was built with, found none kept there; open it with encoder=..."
        )
    encoder = open_kept(index_folder / str(name)) if given is None else as_encoder(given)
    if encoder.fingerprint != fingerprint:
        raise EncoderMismatch(
            f"expected the encoder {fingerprint[:12]} that {index_folder} was built with, "
            f"found {encoder.fingerprint[:12]}; open it without encoder=, or build a new index"
        )
    return encoder
