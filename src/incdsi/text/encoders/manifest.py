"""manifest.json: what a `model/` folder holds and which function it computes.

model/
  model.onnx       token ids -> embeddings; pooling and normalisation are part of the graph
  tokenizer.json   text -> token ids
  manifest.json    this record, with the sha256 of the other files
  model.safetensors  the weights, where the graph does not hold them itself
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from incdsi.errors import InvalidFile, ModelNotFound, UnsupportedFormat

FORMAT = 2  # 1 had every weight inside its graph, and one prompt
KINDS: dict[str, type] = {
    **dict.fromkeys(("dimension", "max_length", "pad_id", "format"), int),
    **dict.fromkeys(("pooling", "prompt", "fingerprint", "precision"), str),
    **dict.fromkeys(("agreement", "files"), dict),
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


def holds_onnx(folder: Path) -> bool:
    """Whether the folder is one that `read_manifest` can be asked about."""
    return (folder / MANIFEST).is_file() and (folder / GRAPH).is_file()


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write manifest.json into the folder."""
    text = json.dumps(asdict(manifest), indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


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


def require_sound(folder: Path, manifest: Manifest) -> None:
    """Refuse a file that is not the one that was written, by its sha256 (60 ms for 90 MB)."""
    for name, wanted in manifest.files.items():
        _require_digest(folder / name, wanted)


def file_sha256(path: Path) -> str:
    """The sha256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _parsed(state: Any) -> Manifest:
    if not isinstance(state, dict):
        raise TypeError(f"a {type(state).__name__}")
    if isinstance(state.get("format"), int) and state["format"] > FORMAT:
        raise UnsupportedFormat(
            f"the encoder has format {state['format']}, and this incdsi reads up to {FORMAT}; upgrade incdsi"
        )
    state = {"document_prompt": None, **state}
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
    return Manifest(**{field.name: state[field.name] for field in fields(Manifest)})


def _require_digest(path: Path, wanted: str) -> None:
    found = file_sha256(path) if path.is_file() else "no file"
    if found != wanted:
        raise InvalidFile(f"expected sha256 {wanted}, found {found}; export the model again", path=path)
