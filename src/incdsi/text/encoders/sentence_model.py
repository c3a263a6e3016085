"""A model's folder as sentence-transformers writes it, read without sentence-transformers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from incdsi.errors import IncDSIError, InvalidFile, MissingExtra, ModelNotFound
from incdsi.text.encoders.families import ACTIVATIONS, FAMILIES
from incdsi.text.encoders.fingerprint import Prompts, Weight, architecture, canonical_tokenizer, fingerprint
from incdsi.text.encoders.manifest import TOKENIZER, WEIGHTS
from incdsi.text.encoders.weights import Tensor, read_tensors

TORCH_DTYPES = {"F32": "torch.float32", "F16": "torch.float16", "BF16": "torch.bfloat16"}
OLD_NAMES = {".gamma": ".weight", ".beta": ".bias"}  # of normalisations, in the first checkpoints of BERT
POOLINGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
PLAIN = ({"type": "Transformer", "path": ""}, {"type": "Pooling", "path": "1_Pooling"})  # a model of transformers alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A step behind the transformer: Pooling, Dense, Normalize or Dropout, with its config and tensors."""

    kind: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceModel:
    """What a text goes through: tokenizer, transformer (its config, with defaults, and tensors), then `modules`."""

    weights: Path
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    width: int
    modules: tuple[Module, ...]
    tokenizer: str
    max_length: int
    pad_id: int
    prompts: Prompts

    @property
    def pooling(self) -> str:
        """How token vectors become one, by sentence-transformers' name."""
        config = next((module.config for module in self.modules if module.kind == "Pooling"), {"pooling_mode": "none"})
        modes = config.get("pooling_mode") or [mode for key, mode in POOLINGS.items() if config.get(key)] or "mean"
        return modes if isinstance(modes, str) else "+".join(modes)

    @property
    def normalise(self) -> bool:
        """Whether embeddings have unit length."""
        return any(module.kind == "Normalize" for module in self.modules)

    @property
    def fingerprint(self) -> str:
        """The same as that of the torch encoder; reads all weights."""
        settings = {
            "pooling": self.pooling,
            "normalise": self.normalise,
            "max_length": self.max_length,
            **self.prompts.settings(),
            "architecture": architecture(self.config),
        }
        return fingerprint(settings, self.tokenizer, self._weights())

    def _weights(self) -> Iterator[Weight]:
        for place, tensors in enumerate((self.tensors, *(module.tensors for module in self.modules))):
            for name, tensor in tensors.items():
                yield f"{place}.{name}", TORCH_DTYPES[tensor.dtype], tensor.shape, tensor.bytes()


def read_sentence_model(folder: Path) -> SentenceModel:
    """Read a folder with config.json, tokenizer.json and model.safetensors, and modules.json if it has one.

    Raises ModelNotFound or InvalidFile where there is no such model, and MissingExtra for one that cannot be written
    as ONNX without torch.
    """
    try:
        return _read(folder)
    except IncDSIError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidFile(f"this is no model as sentence-transformers writes it: {error!r}", path=folder) from error


def _read(folder: Path) -> SentenceModel:
    first, *others = _json(folder / "modules.json", PLAIN)
    if not str(first["type"]).endswith("Transformer"):
        raise needs_torch(f"{folder} begins with a module {first['type']!r}")
    inner = folder / first["path"]
    if not (inner / "config.json").is_file():
        raise ModelNotFound(f"no model in {inner}: config.json is missing; choose another folder")
    config = _config(inner)
    settings = _json(inner / "sentence_bert_config.json", {})
    tokenizer, pad_id, longest = _tokenizer(inner, bool(settings.get("do_lower_case")))
    longest = min(longest, config.get("max_position_embeddings") or longest)
    family = FAMILIES[config["model_type"]]
    tensors = _encoder_tensors(inner / WEIGHTS, family.prefix)
    own = _json(folder / "config_sentence_transformers.json", {})
    return SentenceModel(
        weights=inner / WEIGHTS,
        config=config,
        tensors=tensors,
        width=tensors[f"{family.words}.weight"].shape[1],
        modules=tuple(_module(folder / other["path"], other["type"]) for other in others),
        tokenizer=tokenizer,
        max_length=int(settings.get("max_seq_length") or longest),
        pad_id=config.get("pad_token_id") or 0 if pad_id is None else pad_id,
        prompts=Prompts.of(own.get("prompts") or {}, own.get("default_prompt_name")),
    )


def needs_torch(why: str) -> MissingExtra:
    """What is raised for a model whose graph only torch can write."""
    return MissingExtra(f"{why}: such a model needs torch; install it with: pip install 'incdsi[train]'")


def _config(folder: Path) -> dict[str, Any]:
    config = _json(folder / "config.json", {})
    family = FAMILIES.get(config.get("model_type"))
    if family is None:
        raise needs_torch(f"{folder} is a model of type {config.get('model_type')!r}, not one of {', '.join(FAMILIES)}")
    config = family.completed({**family.defaults, **config})
    config |= {name: int(config[name]) for name in (family.heads, family.count)}
    if config[family.activation] not in ACTIVATIONS:
        raise needs_torch(f"{folder} uses the activation {config[family.activation]!r}")
    turns = config.get("rope_parameters", {}).values()
    if config.get("rope_scaling") or any(turn["rope_type"] != "default" for turn in turns):
        raise needs_torch(f"{folder} scales its rotary positions")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise needs_torch(f"{folder} uses {config['position_embedding_type']} positions")
    return config


def _encoder_tensors(path: Path, prefix: str) -> dict[str, Tensor]:
    """The encoder's own tensors by the names they have in it, without heads and buffers of integers."""
    if not path.is_file():
        raise needs_torch(f"{path.parent} has no {WEIGHTS}")
    found = {name: tensor for name, tensor in read_tensors(path).items() if tensor.dtype in TORCH_DTYPES}
    if any(name.startswith(prefix) for name in found):
        found = {name.removeprefix(prefix): tensor for name, tensor in found.items() if name.startswith(prefix)}
    for old, new in OLD_NAMES.items():
        found = {name.removesuffix(old) + new if name.endswith(old) else name: t for name, t in found.items()}
    return found


def _module(folder: Path, kind: str) -> Module:
    weights = folder / WEIGHTS
    return Module(
        kind=kind.rsplit(".", 1)[-1],
        config=_json(folder / "config.json", {}),
        tensors=read_tensors(weights) if weights.is_file() else {},
    )


def _tokenizer(folder: Path, lower: bool) -> tuple[str, int | None, int]:
    """The tokenizer as canonical JSON, its padding's id if it says one, and the most tokens it wants."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise needs_torch(f"{folder} has no {TOKENIZER}")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises plain Exception
        raise InvalidFile(f"not a tokenizer ({error}); fetch the model again", path=path) from error
    if lower and not getattr(tokenizer.normalizer, "lowercase", False):
        raise needs_torch(f"{folder} lower-cases texts before its tokenizer")
    settings = _json(folder / "tokenizer_config.json", {})
    padding = settings.get("pad_token")
    padding = padding["content"] if isinstance(padding, dict) else padding
    return (
        canonical_tokenizer(tokenizer.to_str()),
        tokenizer.token_to_id(padding) if padding else None,
        int(settings.get("model_max_length") or 512),
    )


def _json(path: Path, missing: Any) -> Any:
    """A file's JSON, of the same type as `missing`, which stands for no file."""
    if not path.is_file():
        return missing
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict) != isinstance(missing, dict):
            raise TypeError(f"a {type(found).__name__}")
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidFile(f"not the JSON of a model ({error}); fetch the model again", path=path) from error
    return found
