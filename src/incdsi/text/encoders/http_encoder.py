"""An encoder behind HTTP: the `/v1/embeddings` that Ollama, TEI, vLLM and hosted services share."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import EncoderMismatch, EncoderUnavailable, InvalidFile, InvalidInput
from incdsi.progress import Progress
from incdsi.text.encoders.manifest import ENDPOINT
from incdsi.text.encoders.protocol import Encoder, WithPrompt

KEY = "INCDSI_ENCODER_KEY"  # environment variable; a key is never stored
BATCH = 32  # texts in one request
SECONDS = 60.0  # for one answer
WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds before each retry
PASSING = {408, 425, 429, 500, 502, 503, 504}  # statuses that may be gone in a moment
PROBE = "The river rises in the mountains and flows to the sea."
SAME = 0.999  # cosine of the probe, on another machine or with another batch


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the model is asked, and what it said to the probe, so that another one under its name is noticed."""

    url: str
    model: str
    prompt: str = ""
    document_prompt: str = ""
    probe: tuple[float, ...] = ()


class HttpEncoder:
    """Texts to unit vectors by requests in batches, each retried for a while; safe to call from several threads.

    The fingerprint goes by the model's name, not by the address: it may move. A server that answers the probe in
    another way is refused (EncoderMismatch) before anything is embedded. Raises EncoderUnavailable without an answer.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.dimension = len(endpoint.probe)
        named = (endpoint.model, endpoint.prompt, endpoint.document_prompt, self.dimension)
        self.fingerprint = hashlib.sha256(json.dumps(["http", *named]).encode()).hexdigest()
        self._checked = False
        self._lock = threading.Lock()

    @classmethod
    def connect(cls, url: str, model: str, *, prompt: str = "", document_prompt: str = "") -> Self:
        """An encoder at `url` (such as http://localhost:11434/v1), which is asked once for its dimension."""
        if not url.startswith(("http://", "https://")) or not model:
            raise InvalidInput(f"{url!r} and {model!r} are not the address of a server and the name of a model")
        probe = _asked(url, model, [PROBE])[0]
        found = tuple(float(value) for value in probe)
        return cls(Endpoint(url=url, model=model, prompt=prompt, document_prompt=document_prompt, probe=found))

    @classmethod
    def open(cls, folder: Path) -> Self:
        """What `save` wrote; asks nobody."""
        path = folder / ENDPOINT
        try:
            state = json.loads(path.read_text(encoding="utf-8"))
            return cls(Endpoint(**{**state, "probe": tuple(float(value) for value in state["probe"])}))
        except (ValueError, TypeError, KeyError) as error:
            raise InvalidFile(f"not the address of an encoder ({error!r})", path=path) from error

    def save(self, folder: Path) -> None:
        """Write where it is, without any key, into a folder."""
        (folder / ENDPOINT).write_text(json.dumps(asdict(self.endpoint), indent=2) + "\n", encoding="utf-8")

    @property
    def document_prompt(self) -> str:
        """The words put before every document."""
        return self.endpoint.document_prompt

    @property
    def documents(self) -> Encoder:
        """The encoder of documents: this one, unless they have another prompt."""
        return self if self.document_prompt == self.endpoint.prompt else WithPrompt(self)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed queries, and documents where they are embedded alike, in their order: (n, h)."""
        return self.encode_with(self.endpoint.prompt, texts, progress)

    def encode_with(self, prompt: str, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed texts, with these words before each, in their order: (n, h)."""
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        if len(texts):
            self._check()
        for start in range(0, len(texts), BATCH):
            some = [prompt + text for text in texts[start : start + BATCH]]
            rows = _asked(self.endpoint.url, self.endpoint.model, some)
            if rows.shape[1] != self.dimension:
                raise self._mismatch(f"vectors of {rows.shape[1]} numbers, not {self.dimension}")
            out[start : start + len(some)] = rows
            if progress is not None:
                progress(start + len(some), len(texts))
        return out

    def _check(self) -> None:
        """Once: the probe is embedded as it was when this encoder was made."""
        with self._lock:
            if self._checked:
                return
            found = _asked(self.endpoint.url, self.endpoint.model, [PROBE])[0]
            if found.shape != (self.dimension,):
                raise self._mismatch(f"vectors of {len(found)} numbers, not {self.dimension}")
            cosine = float(found @ np.array(self.endpoint.probe, dtype=np.float32))
            if not cosine >= SAME:
                raise self._mismatch(f"a vector with a cosine of {cosine:.4f} to what it gave before")
            self._checked = True

    def _mismatch(self, found: str) -> EncoderMismatch:
        return EncoderMismatch(
            f"{self.endpoint.url} serves another model as {self.endpoint.model!r} than before: it gave {found}; "
            "serve the old one again, or build a new index"
        )


def _asked(url: str, model: str, texts: list[str]) -> NDArray[np.float32]:
    """Unit vectors (n, h) for the texts; what may pass is tried again."""
    body = json.dumps({"model": model, "input": texts, "encoding_format": "float"}).encode()
    for wait in (*WAITS, None):
        try:
            return _vectors(url, _posted(f"{url.rstrip('/')}/embeddings", body), len(texts))
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(500).decode("utf-8", "replace").strip()
            if error.code not in PASSING or wait is None:
                raise EncoderUnavailable(_refusal(url, model, error.code, said)) from error
        except OSError as error:  # no connection, or no answer in time
            if wait is None:
                raise EncoderUnavailable(
                    f"the encoder at {url} does not answer ({error}); start it, then retry"
                ) from error
        time.sleep(wait)
    raise AssertionError("the last try returns or raises")


def _posted(url: str, body: bytes) -> Any:
    headers = {"Content-Type": "application/json"}
    key = os.environ.get(KEY)
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(url, body, headers)
    with urllib.request.build_opener(_Stay).open(request, timeout=SECONDS) as answer:
        try:
            return json.load(answer)
        except ValueError as error:
            raise EncoderUnavailable(f"{url} does not answer with JSON; is it an /embeddings endpoint?") from error


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: texts and key are for the address that was given."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _vectors(url: str, answer: Any, count: int) -> NDArray[np.float32]:
    try:
        placed = {entry["index"]: entry["embedding"] for entry in answer["data"]}
        rows = np.array([placed[place] for place in range(count)], dtype=np.float32)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if rows.ndim != 2 or not rows.shape[1] or not np.all(lengths > 0) or not np.isfinite(lengths).all():
            raise ValueError("vectors without a direction")
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise EncoderUnavailable(f"{url} answered {count} texts with something else than {count} vectors") from error
    unit: NDArray[np.float32] = rows / lengths
    return unit


def _refusal(url: str, model: str, status: int, said: str) -> str:
    advice = {
        401: f"set {KEY}",
        403: f"set {KEY}",
        404: f"check the address and that it serves {model!r}",
        413: "let it truncate, or add shorter texts",
    }
    return f"the encoder at {url} refused with {status} ({said[:200]}); {advice.get(status, 'see its log')}"
