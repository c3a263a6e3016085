"""Models by folder or name: local ones first, then a single request to the hub, without retries."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from incdsi.errors import ModelNotFound

Model = TypeVar("Model")

NEEDED = ["*.json", "*model.safetensors"]


def find_model(name: str | Path, load: Callable[[str, bool], Model]) -> Model:
    """Call `load(name, local_files_only)` for a folder, the local cache, then the hub.

    Raises ModelNotFound with one sentence, offline within the time of one failed request.
    """
    folder = folder_named(name)
    if folder is not None:
        return _from_folder(folder, load)
    name = str(name)
    with quiet():
        with contextlib.suppress(OSError, ValueError):
            return load(name, True)
        _require_on_hub(name)
        return load(name, False)


def folder_named(name: str | Path) -> Path | None:
    """The folder of that name, or None for what can only be a name on the hub. Raises ModelNotFound."""
    folder = Path(name)
    if folder.is_dir():
        return folder
    if isinstance(name, Path) or len(folder.parts) > 2:
        raise ModelNotFound(f"there is no folder {folder}; check the path")
    return None


def fetch_model(name: str) -> Path:
    """The folder of a model's safetensors, tokenizer and settings: the hub client's own copy, else fetched.

    Raises ModelNotFound with one sentence.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    with contextlib.suppress(OSError, ValueError):
        found = Path(snapshot_download(name, local_files_only=True))
        if (found / "model.safetensors").is_file():
            return found
    _require_on_hub(name)
    shown = not are_progress_bars_disabled()
    disable_progress_bars()
    try:
        return Path(snapshot_download(name, allow_patterns=NEEDED))
    except Exception as error:  # the class depends on the hub client's transport
        raise ModelNotFound(f"the hub did not give the model {name!r} ({_first_line(error)}); try again") from error
    finally:
        if shown:
            enable_progress_bars()


def _from_folder(folder: Path, load: Callable[[str, bool], Model]) -> Model:
    if not any((folder / file).is_file() for file in ("config.json", "modules.json")):
        raise ModelNotFound(f"no model in {folder}: config.json and modules.json are missing; choose another folder")
    with quiet():
        try:
            return load(str(folder), True)
        except Exception as error:  # every library below has its own classes for a damaged model
            raise ModelNotFound(f"cannot load the model in {folder}: {_first_line(error)}") from error


def _require_on_hub(name: str) -> None:
    from huggingface_hub import HfApi

    try:
        HfApi().model_info(name, timeout=10)
    except Exception as error:  # the class depends on the hub client's transport
        raise ModelNotFound(
            f"no model {name!r}: not a folder, not in the local cache, not on the hub ({_first_line(error)}); "
            "check the name and the connection, or give a folder"
        ) from error


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' progress bars off the terminal: the library never prints."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
