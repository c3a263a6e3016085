"""The trainable encoder: any sentence-transformers model. Importing this file needs the extra `train`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from incdsi.errors import InvalidInput, MissingExtra
from incdsi.progress import Progress
from incdsi.text.encoders.fingerprint import Prompts, Weight, architecture, canonical_tokenizer, fingerprint
from incdsi.text.encoders.protocol import Encoder, WithPrompt
from incdsi.text.hub import find_model, quiet

try:
    import torch
    from sentence_transformers import SentenceTransformer

    try:
        from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    except ImportError:  # sentence-transformers 5
        from sentence_transformers.models import Normalize, Pooling
except ImportError as error:
    raise MissingExtra(
        f"this encoder needs torch and sentence-transformers, and {error.name or 'one of them'} cannot be imported; "
        "run: pip install 'incdsi[train]'"
    ) from error

BATCH = 32
BLOCK = 8 * BATCH  # texts between two calls of progress


class TorchEncoder:
    """An encoder through sentence-transformers; `model` is the SentenceTransformer itself, for training."""

    def __init__(self, model: SentenceTransformer) -> None:
        self.model = model

    @classmethod
    def load(
        cls,
        name: str | Path,
        *,
        pooling: str | None = None,
        normalise: bool | None = None,
        max_length: int | None = None,
        device: str | None = None,
    ) -> Self:
        """Load a model by hub name or from a folder; None keeps what the model itself says.

        `pooling` is "cls", "mean" or another mode of sentence-transformers. Raises ModelNotFound.
        """
        model = find_model(name, lambda name, local: SentenceTransformer(name, device=device, local_files_only=local))
        if pooling is not None or normalise is not None:
            model = _remade(model, pooling, normalise)
        if max_length is not None:
            _limit_length(model, max_length)
        return cls(model)

    @property
    def dimension(self) -> int:
        """h, the length of an embedding."""
        measure = getattr(self.model, "get_embedding_dimension", None)
        return int((measure or self.model.get_sentence_embedding_dimension)())

    @property
    def pooling(self) -> str:
        """How token vectors become one: "cls", "mean", ..., or "none" for a model with no such step."""
        modes = [_pooling_mode(module) for module in self.model if isinstance(module, Pooling)]
        return modes[0] if modes else "none"

    @property
    def normalise(self) -> bool:
        """Whether embeddings have unit length."""
        return any(isinstance(module, Normalize) for module in self.model)

    @property
    def max_length(self) -> int:
        """Tokens after which a text is cut, special tokens included."""
        return int(self.model.max_seq_length or 512)

    @property
    def prompts(self) -> Prompts:
        """The words put before a query and before a document, for models that want some."""
        return Prompts.of(self.model.prompts, self.model.default_prompt_name)

    @property
    def document_prompt(self) -> str:
        """The words put before every document."""
        return self.prompts.document

    @property
    def documents(self) -> Encoder:
        """The encoder of documents: this one, unless its model has another prompt for them."""
        return self if self.document_prompt == self.prompts.query else WithPrompt(self)

    @property
    def fingerprint(self) -> str:
        """sha256 over the function as it is now; reads all weights, so ask once (0.1 s for 90 MB)."""
        return fingerprint(self._settings(), tokenizer_json(self.model), _weights(self.model))

    @property
    def tokens_read(self) -> int:
        """Tokens of a document's own that count: those of its prompt and the special ones are not."""
        taken = int(self.model.tokenizer.num_special_tokens_to_add(pair=False))
        return max(1, self.max_length - taken - self.count_tokens([self.document_prompt])[0])

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has, however long it is, without special ones."""
        if not texts:
            return []
        found = self.model.tokenizer(list(texts), add_special_tokens=False, truncation=False, verbose=False)
        return [len(ids) for ids in found["input_ids"]]

    def save(self, folder: Path) -> None:
        """Write what `load` reads."""
        with quiet():
            self.model.save(str(folder))

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed queries, and documents where they are embedded alike, in their order: (n, h)."""
        return self.encode_with(self.prompts.query, texts, progress)

    def encode_with(self, prompt: str, texts: Sequence[str], progress: Progress | None = None) -> NDArray[np.float32]:
        """Embed texts, with these words before each, in their order; texts of like length share a batch."""
        out = np.empty((len(texts), self.dimension), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        with _evaluating(self.model):
            for start in range(0, len(order), BLOCK):
                chosen = order[start : start + BLOCK]
                block = self.model.encode(
                    [texts[i] for i in chosen],
                    prompt=prompt,
                    batch_size=BATCH,
                    show_progress_bar=False,
                    convert_to_numpy=True,
                )
                out[chosen] = np.asarray(block, dtype=np.float32)
                if progress is not None:
                    progress(start + len(chosen), len(texts))
        return out

    def _settings(self) -> dict[str, Any]:
        config = self.model[0].auto_model.config.to_dict()
        return {
            "pooling": self.pooling,
            "normalise": self.normalise,
            "max_length": self.max_length,
            **self.prompts.settings(),
            "architecture": architecture(config),
        }


def tokenizer_json(model: SentenceTransformer) -> str:
    """The tokenizer as canonical JSON, without the padding and truncation of the moment."""
    backend = getattr(model.tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InvalidInput(
            f"{type(model.tokenizer).__name__} is not a fast tokenizer; save the model with a tokenizer.json first"
        )
    return canonical_tokenizer(backend.to_str())


def _remade(model: SentenceTransformer, pooling: str | None, normalise: bool | None) -> SentenceTransformer:
    """The same transformer with another head."""
    modules = [module for module in model if not isinstance(module, Normalize)]
    if pooling is not None:
        pooled = _pooling(modules[0], pooling)
        modules = [modules[0], pooled, *(m for m in modules[1:] if not isinstance(m, Pooling))]
    wanted = normalise if normalise is not None else len(modules) < len(model)
    modules += [Normalize()] if wanted else []
    return SentenceTransformer(
        modules=modules,
        device=str(model.device),
        prompts=model.prompts,
        default_prompt_name=model.default_prompt_name,
    )


def _pooling(transformer: Any, mode: str) -> Pooling:
    measure = getattr(transformer, "get_embedding_dimension", None)
    dimension = (measure or transformer.get_word_embedding_dimension)()
    try:
        return Pooling(dimension, pooling_mode=mode)
    except ValueError as error:
        raise InvalidInput(f"pooling must be one of {Pooling.POOLING_MODES}, not {mode!r}") from error


def _pooling_mode(module: Pooling) -> str:
    if hasattr(module, "pooling_mode"):
        return module.pooling_mode if isinstance(module.pooling_mode, str) else "+".join(module.pooling_mode)
    return str(module.get_pooling_mode_str())


def _limit_length(model: SentenceTransformer, max_length: int) -> None:
    most = getattr(model[0].auto_model.config, "max_position_embeddings", None)
    if max_length < 3 or (most is not None and max_length > most):
        raise InvalidInput(f"max_length must be from 3 to {most or 'the model size'}, not {max_length}")
    model.max_seq_length = max_length


def _weights(model: SentenceTransformer) -> Iterator[Weight]:
    """Parameters named as in their checkpoint, so that names do not change with the libraries."""
    for place, module in enumerate(model):
        inner = getattr(module, "auto_model", module)
        for name, parameter in inner.named_parameters():
            content = parameter.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
            yield f"{place}.{name}", str(parameter.dtype), tuple(parameter.shape), content


@contextlib.contextmanager
def _evaluating(model: SentenceTransformer) -> Iterator[None]:
    """A model in training goes back to training: `SentenceTransformer.encode` would leave dropout off."""
    training = model.training
    try:
        yield
    finally:
        model.train(training)
