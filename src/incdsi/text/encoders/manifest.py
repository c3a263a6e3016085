"""manifest.json: what a `model/` folder holds and which function it computes.

model/
  model.onnx       token ids -> embeddings; pooling and normalisation are part of the graph
  tokenizer.json   text -> token ids
  manifest.json    this record, with the sha256 and the checksums of the other files
  model.safetensors  the weights, where the graph does not hold them itself
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from xxhash import xxh3_128

from incdsi.durable import appearing_file
from incdsi.errors import InvalidFile, ModelNotFound, UnsupportedFormat

FORMAT = 2  # 1 had every weight inside its graph, and one prompt
KINDS: dict[str, type] = {
    **dict.fromkeys(("dimension", "max_length", "pad_id", "format"), int),
    **dict.fromkeys(("pooling", "prompt", "fingerprint", "precision"), str),
    **dict.fromkeys(("agreement", "files", "checksums"), dict),
    "normalise": bool,
}
LEAST = {"dimension": 1, "max_length": 1, "pad_id": 0, "format": 1}
GRAPH, TOKENIZER, MANIFEST, WEIGHTS = "model.onnx", "tokenizer.json", "manifest.json", "model.safetensors"
ENDPOINT = "endpoint.json"
STATES = "token_states"  # the second output of a graph whose embeddings are the mean of these, perhaps normalised
PLAIN = ("Pooling", "Normalize", "Dropout")  # modules behind the transformer of such a model


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """`agreement` is the lowest and mean cosine to the torch encoder, measured at export."""

    dimension: int
    pooling: str
    normalise: bool
    max_length: int
    pad_id: int
    prompt: str
    fingerprint: str
    precision: str
    agreement: Mapping[str, float]
    files: Mapping[str, str]
    format: int = FORMAT
    document_prompt: str | None = None  # None: `prompt` is for documents too
    checksums: Mapping[str, str] = field(default_factory=dict)  # empty in those of older versions


def digests(folder: Path, names: Iterable[str], digest: Callable[[Path], str]) -> dict[str, str]:
    """By name, what a manifest says of these files."""
    return {name: digest(folder / name) for name in names}


def holds_onnx(folder: Path) -> bool:
    """Whether the folder is one that `read_manifest` can be asked about."""
    return (folder / MANIFEST).is_file() and (folder / GRAPH).is_file()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json into the folder."""
    (folder / MANIFEST).write_bytes(_written(manifest))


def add_checksums(folder: Path, manifest: Manifest) -> None:
    """Replace a manifest of an older version, whose files are sound, by one with their checksums."""
    found = replace(manifest, checksums=digests(folder, manifest.files, file_checksum))
    with appearing_file(folder / MANIFEST) as file:
        file.write(_written(found))


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a `model/` folder; `require_sound` checks its other files."""
    path = folder / MANIFEST
    if not holds_onnx(folder):
        raise ModelNotFound(f"{GRAPH} or {MANIFEST} is missing in {folder}; export the model again")
    try:
        manifest = _parsed(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, RecursionError) as error:
        found = "JSON nested too deeply" if isinstance(error, RecursionError) else error
        raise InvalidFile(f"not the manifest of an encoder ({found}); export the model again", path=path) from error
    return manifest


def require_sound(folder: Path, manifest: Manifest, *, full: bool = False) -> None:
    """Refuse a file that is not the one that was written: by its checksum, or sha256 if `full` or there is none.

    For 90 MB that is 10 ms, or 60. Neither would stop somebody who may write there, and so the manifest too.
    """
    for name, wanted in manifest.files.items():
        if manifest.checksums and not full:
            _require_digest(folder / name, "checksum", file_checksum, manifest.checksums[name])
        else:
            _require_digest(folder / name, "sha256", file_sha256, wanted)


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def file_checksum(path: Path) -> str:
    """The XXH3 of a file's bytes: finds rot, at the speed of memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, xxh3_128).hexdigest()


def _written(manifest: Manifest) -> bytes:
    return (json.dumps(asdict(manifest), indent=2, ensure_ascii=False) + "\n").encode()


def _parsed(state: Any) -> Manifest:
    if not isinstance(state, dict):
        raise TypeError(f"a {type(state).__name__}")
    if isinstance(state.get("format"), int) and state["format"] > FORMAT:
        raise UnsupportedFormat(
            f"the encoder has format {state['format']}, and this incdsi reads up to {FORMAT}; upgrade incdsi"
        )
    state = {"document_prompt": None, "checksums": {}, **state}
    missing = [field.name for field in fields(Manifest) if field.name not in state]
    if missing:
        raise TypeError(f"no {', '.join(missing)}")
    wrong = [f"{name} {state[name]!r:.40}" for name, kind in KINDS.items() if type(state[name]) is not kind]
    wrong += [f"{name} {state[name]}" for name, least in LEAST.items() if not wrong and state[name] < least]
    if not isinstance(state["document_prompt"], str | None):
        wrong.append(f"document_prompt {state['document_prompt']!r:.40}")
    if wrong:
        raise TypeError(", ".join(wrong))
    if not {GRAPH, TOKENIZER} <= set(state["files"]) <= {GRAPH, TOKENIZER, WEIGHTS}:
        raise TypeError(f"files {sorted(state['files'])}")
    if state["checksums"] and set(state["checksums"]) != set(state["files"]):
        raise TypeError(f"checksums of {sorted(state['checksums'])}")
    return Manifest(**{field.name: state[field.name] for field in fields(Manifest)})


def _require_digest(path: Path, kind: str, digest: Callable[[Path], str], wanted: str) -> None:
    found = digest(path) if path.is_file() else "no file"
    if found != wanted:
        raise InvalidFile(f"expected {kind} {wanted}, found {found}; export the model again", path=path)
