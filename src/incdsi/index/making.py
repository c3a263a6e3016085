"""Where an index begins: the one place that names kinds of engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from incdsi.client.connecting import Remote
from incdsi.engine.addresses import milvus_address
from incdsi.engine.local import LocalEngine, models
from incdsi.engine.protocol import Engine
from incdsi.engine.settings import Method, Settings
from incdsi.errors import InvalidInput
from incdsi.hyperparameters import PAPER, SAFE, Hyperparameters
from incdsi.index.remembered import DEFAULT_GENERATOR, DEFAULT_SPLITTER, GENERATOR, SPLITTER
from incdsi.records import JSON
from incdsi.text.encoders import Encoder
from incdsi.text.generators import Generator, described
from incdsi.text.passages import Splitter, identity

if TYPE_CHECKING:
    from incdsi.engine.milvus import MilvusEngine

R = TypeVar("R", bound=Remote)


def create(
    path: Path | str,
    encoder: Encoder,
    generator: Generator | None,
    splitter: Splitter | None,
    method: Method,
    hyperparameters: Hyperparameters | None,
    tuning: bool,
    language: str,
    one_pass: bool,
) -> None:
    """An empty index in a new folder, or on a Milvus server."""
    settings = Settings(
        fingerprint=encoder.fingerprint,
        dimension=encoder.dimension,
        model=models.folder_name(encoder),
        method=method,
        hyperparameters=hyperparameters or (SAFE if method == "general" else PAPER),
        tuning=tuning and method == "general",
        language=language,
        one_pass=one_pass,
    )
    remembered = {
        GENERATOR: described(generator or DEFAULT_GENERATOR),
        SPLITTER: identity.described(splitter or DEFAULT_SPLITTER),
    }
    create_like(path, settings, encoder, remembered)


def create_like(path: Path | str, settings: Settings, encoder: Encoder | None, beside: Mapping[str, JSON]) -> None:
    """An empty index with these settings, and what is remembered beside them."""
    if address := milvus_address(path):
        milvus().create(address, settings, encoder, beside)
    else:
        LocalEngine.create(path, settings, encoder, beside)


def open_engine(path: Path | str) -> Engine:
    """The engine whose documents are there."""
    address = milvus_address(path)
    return milvus().open(address) if address else LocalEngine.open(path)


def milvus() -> type[MilvusEngine]:
    """The engine on Milvus, whose client is imported only where one is used."""
    from incdsi.engine.milvus import MilvusEngine

    return MilvusEngine


def require_language_of(engine: Engine, language: str | None) -> None:
    """Refuse another language than the index was created with; None is whatever it has."""
    own = engine.view().settings.language
    if language not in (None, own):
        raise InvalidInput(
            f"{engine} is an index in {own!r}, not {language!r}; its language is chosen when it is created"
        )


def is_address(path: Path | str) -> bool:
    """Whether an index is behind a server rather than in a folder."""
    return isinstance(path, str) and path.startswith(("http://", "https://"))


def open_remote(kind: type[R], url: Path | str, key: str | None, *given: object) -> R:
    """The index behind a server, which takes nothing of what may be `given` for a folder."""
    if any(one is not None for one in given):
        raise InvalidInput("a server has its own index, encoder and generator; drop the argument")
    return kind(str(url), key=key)
