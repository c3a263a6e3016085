"""What stage 1 hands to the index: vectors, queries, their embeddings and the encoder, in memory or a folder.

<folder>/manifest.json            format, encoder fingerprint, curve, sha256 of every other file
<folder>/documents.jsonl          one id per line
<folder>/document_vectors.npy, text_embeddings.npy, representative_queries.npy     (n, h) float32
<folder>/own_scores.npy                                                            (n,) float32
<folder>/queries.jsonl, queries.npy     the training queries: text, owner's position; (m, h) float32
<folder>/held_out.jsonl, held_out.npy   the validation queries, alike
<folder>/model/                   the frozen encoder as ONNX
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidFile, InvalidInput, UnsupportedFormat
from incdsi.text.encoders import Encoder, load_encoder
from incdsi.text.encoders.manifest import GRAPH, TOKENIZER
from incdsi.text.encoders.manifest import MANIFEST as ENCODER_MANIFEST
from incdsi.text.encoders.onnx_encoder import OnnxEncoder
from incdsi.training.folders import appearing
from incdsi.training.records import Epoch

FORMAT = 1
MANIFEST = "manifest.json"
DOCUMENTS = "documents.jsonl"
MODEL = "model"
ARRAYS = ("document_vectors", "text_embeddings", "representative_queries", "own_scores")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CachedQueries:
    """Query texts, the position (m,) of the document each belongs to, and embeddings (m, h)."""

    texts: tuple[str, ...]
    owners: NDArray[np.int64]
    embeddings: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainedModel:
    """The initial model: everything the index takes over; positions follow `document_ids`.

    `representative_queries` holds the mean of each document's training queries, zero for a document without
    any. `held_out` are the validation queries: in no mean, never trained on. `text_embeddings` are by this
    encoder, unscaled: the anchors.
    """

    document_ids: tuple[str, ...]
    document_vectors: NDArray[np.float32]
    text_embeddings: NDArray[np.float32]
    representative_queries: NDArray[np.float32]
    own_scores: NDArray[np.float32]
    queries: CachedQueries
    held_out: CachedQueries
    encoder: Encoder
    encoder_fingerprint: str
    best_epoch: int
    epochs: tuple[Epoch, ...]

    def save(self, folder: Path | str) -> None:
        """Write the artefact beside `folder`, then rename it there; raises InvalidInput if it exists."""
        with appearing(Path(folder)) as unfinished:
            for name in ARRAYS:
                np.save(unfinished / f"{name}.npy", getattr(self, name), allow_pickle=False)
            _write_lines(unfinished / DOCUMENTS, self.document_ids)
            _write_queries(unfinished, "queries", self.queries)
            _write_queries(unfinished, "held_out", self.held_out)
            _write_encoder(self.encoder, unfinished / MODEL)
            manifest = {
                "format": FORMAT,
                "encoder_fingerprint": self.encoder_fingerprint,
                "best_epoch": self.best_epoch,
                "epochs": [asdict(epoch) for epoch in self.epochs],
                "files": _digests(unfinished),
            }
            (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path | str) -> TrainedModel:
        """Read a saved artefact, checking every file's digest; raises InvalidFile or UnsupportedFormat."""
        folder = Path(folder)
        manifest = _read_manifest(folder)
        return cls(
            document_ids=tuple(_read_lines(folder / DOCUMENTS)),
            **{name: np.load(folder / f"{name}.npy", allow_pickle=False) for name in ARRAYS},
            queries=_read_queries(folder, "queries"),
            held_out=_read_queries(folder, "held_out"),
            encoder=load_encoder(folder / MODEL),
            encoder_fingerprint=manifest["encoder_fingerprint"],
            best_epoch=manifest["best_epoch"],
            epochs=tuple(Epoch.from_json(fields) for fields in manifest["epochs"]),
        )


def _write_encoder(encoder: Encoder, folder: Path) -> None:
    if isinstance(encoder, OnnxEncoder):
        folder.mkdir()
        for name in (GRAPH, TOKENIZER, ENCODER_MANIFEST):
            shutil.copyfile(encoder.folder / name, folder / name)
        return
    from incdsi.text.encoders.export import export_onnx
    from incdsi.text.encoders.torch_encoder import TorchEncoder

    if not isinstance(encoder, TorchEncoder):
        raise InvalidInput(
            f"expected an ONNX or torch encoder to save, found {type(encoder).__name__}; train with one of those"
        )
    export_onnx(encoder, folder)


def _write_queries(folder: Path, name: str, queries: CachedQueries) -> None:
    pairs = zip(queries.texts, queries.owners.tolist(), strict=True)
    _write_lines(folder / f"{name}.jsonl", [{"text": text, "owner": owner} for text, owner in pairs])
    np.save(folder / f"{name}.npy", queries.embeddings, allow_pickle=False)


def _read_queries(folder: Path, name: str) -> CachedQueries:
    lines = _read_lines(folder / f"{name}.jsonl")
    return CachedQueries(
        texts=tuple(line["text"] for line in lines),
        owners=np.array([line["owner"] for line in lines], dtype=np.int64),
        embeddings=np.load(folder / f"{name}.npy", allow_pickle=False),
    )


def _write_lines(path: Path, values: Sequence[Any]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(value) + "\n" for value in values)


def _read_lines(path: Path) -> list[Any]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _digests(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): _digest(path) for path in paths}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        found = manifest["format"]
        files = manifest["files"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidFile(f"expected the manifest of a trained model, found: {error}", path=path) from error
    if found > FORMAT:
        raise UnsupportedFormat(
            f"expected a trained model of format {FORMAT} or older in {folder}, found {found}; update incdsi"
        )
    for name, digest in files.items():
        part = folder / name
        if not part.is_file() or _digest(part) != digest:
            raise InvalidFile("expected the file its manifest names, found it missing or changed", path=part)
    return manifest
