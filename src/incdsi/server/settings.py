"""How a server runs: flags over INCDSI_* in the environment over a TOML file over these defaults."""

from __future__ import annotations

import ipaddress
import os
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from incdsi.errors import InvalidFile, InvalidInput

LEAST_KEY = 16  # characters; shorter ones can be guessed
CONFIG = "INCDSI_CONFIG"


class ServerSettings(BaseSettings):
    """Everything that can be set; sizes in bytes, times in seconds."""

    model_config = SettingsConfigDict(env_prefix="INCDSI_", frozen=True, extra="forbid", env_ignore_empty=True)

    index: Path = Field(default=Path("index"), description="Folder of the index.")
    host: str = Field(default="127.0.0.1", description="Address to listen on; another than this machine needs a key.")
    port: Annotated[int, Field(ge=0, le=65535, description="0 takes a free one.")] = 7799
    key: SecretStr | None = Field(default=None, description="Who has it may read and write.")
    read_key: SecretStr | None = Field(default=None, description="Who has it may read.")
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        default=[], description="Names under which the server may be called, when it listens on this machine only."
    )
    cors_origins: Annotated[list[str], NoDecode] = Field(
        default=[], description="Origins of other pages that may call it from a browser."
    )
    body_bytes: Annotated[int, Field(ge=1024, description="Most bytes of a body, or of a line of a stream.")] = 8 << 20
    stream_bytes: Annotated[int, Field(ge=1024, description="Most bytes of a stream of documents.")] = 4 << 30
    batch: Annotated[int, Field(ge=1, description="Most documents in one request, streams aside.")] = 1000
    query_characters: Annotated[int, Field(ge=1, description="Most characters of a query.")] = 2000
    searches: Annotated[int, Field(ge=1, description="Most queries in one search request.")] = 100
    answer_bytes: Annotated[int, Field(ge=1024, description="Most bytes of the documents in one search answer.")] = (
        32 << 20
    )
    rate: Annotated[float, Field(gt=0, description="Requests a second that one client may send for long.")] = 1000.0
    burst: Annotated[int, Field(ge=1, description="Requests that one client may send at once.")] = 2000
    connections: Annotated[int, Field(ge=1, description="Most connections at a time.")] = 1000
    queue: Annotated[int, Field(ge=1, description="Most writes that may wait.")] = 256
    threads: Annotated[int, Field(ge=1, description="Searches at a time.")] = max(2, os.cpu_count() or 2)
    header_bytes: Annotated[int, Field(ge=1024, description="Most bytes of a request's first lines.")] = 64 << 10
    body_seconds: Annotated[
        float, Field(gt=0, description="For a body, or the next piece of a stream, to arrive or be read.")
    ] = 30.0
    header_seconds: Annotated[float, Field(gt=0, description="For a request's first lines to arrive.")] = 10.0
    stop_seconds: Annotated[int, Field(ge=1, description="For answers to be finished when stopping.")] = 60
    quality_seconds: Annotated[float, Field(gt=0, description="Least time between two looks at the quality.")] = 10.0

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)

    @model_validator(mode="before")
    @classmethod
    def _split_lists(cls, given: dict[str, Any]) -> dict[str, Any]:
        """A list may be one text with commas, as in an environment variable."""
        lists = {name: given[name] for name in ("allowed_hosts", "cors_origins") if isinstance(given.get(name), str)}
        return given | {
            name: [part.strip() for part in text.split(",") if part.strip()] for name, text in lists.items()
        }

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        keys = [key.get_secret_value() for key in (self.key, self.read_key) if key is not None]
        if any(len(key) < LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key for key in keys):
            raise ValueError(f"expected keys of at least {LEAST_KEY} plain characters, found another; make longer ones")
        if self.read_key is not None and self.key is None:
            raise ValueError("expected a key beside the read-only key, found none; set INCDSI_KEY")
        if len(set(keys)) < len(keys):
            raise ValueError("expected two different keys, found the same twice; change one")
        if self.key is None and "*" in self.cors_origins:
            raise ValueError(
                "cors_origins = * lets any web page call this server, which needs a key then; set INCDSI_KEY or name "
                "the origins"
            )
        if self.key is None and not self.loopback:
            raise ValueError(f"expected a key to listen on {self.host}, found none; set INCDSI_KEY or use 127.0.0.1")
        return self

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @classmethod
    def load(cls, config: Path | None, flags: dict[str, Any]) -> ServerSettings:
        """From a TOML file (or that in INCDSI_CONFIG), the environment and flags; InvalidInput says what is wrong."""
        named = config or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
        if named is not None and not named.is_file():
            raise InvalidFile("expected a TOML file, found none; check the path", path=named)

        class Sourced(cls):  # type: ignore[valid-type, misc]
            model_config = SettingsConfigDict(toml_file=named)

        try:
            made: ServerSettings = Sourced(**flags)
        except ValidationError as error:
            raise InvalidInput("; ".join(map(_sentence, error.errors()))) from None
        except ValueError as error:  # no TOML
            raise InvalidFile(f"expected TOML, found something else ({error})", path=named) from None
        return made


def _sentence(error: Any) -> str:
    name = ".".join(map(str, error["loc"]))
    text = str(error["msg"]).removeprefix("Value error, ")
    return f"setting {name}: {text}" if name else text
