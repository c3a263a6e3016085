"""Server settings: flags override INCDSI_* variables, which override a TOML file, which overrides the defaults."""

from __future__ import annotations

import hmac
import ipaddress
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from incdsi.errors import InvalidFile, InvalidInput

LEAST_KEY = 16  # characters; a shorter key can be guessed
CONFIG = "INCDSI_CONFIG"
Access = Literal["write", "read"]


class Keys(BaseModel):
    """Keys that open one of several indexes and no other."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: SecretStr
    read_key: SecretStr | None = None


class ServerSettings(BaseSettings):
    """All settings; sizes in bytes, times in seconds."""

    model_config = SettingsConfigDict(env_prefix="INCDSI_", frozen=True, extra="forbid", env_ignore_empty=True)

    index: Path = Field(default=Path("index"), description="Folder of the index.")
    indexes: Path | None = Field(default=None, description="Folder of several indexes, served instead of one.")
    host: str = Field(default="127.0.0.1", description="Address to listen on; any but loopback requires a key.")
    port: Annotated[int, Field(ge=0, le=65535, description="0 picks a free port.")] = 7799
    key: SecretStr | None = Field(default=None, description="Grants read and write access.")
    read_key: SecretStr | None = Field(default=None, description="Grants read access.")
    keys: dict[str, Keys] = Field(default={}, description="Keys of single indexes, by name; key opens them all.")
    allowed_hosts: Annotated[list[str], NoDecode] = Field(
        default=[], description="Host names accepted when listening on loopback."
    )
    cors_origins: Annotated[list[str], NoDecode] = Field(
        default=[], description="Other web origins whose pages may call the server."
    )
    body_bytes: Annotated[int, Field(ge=1024, description="Largest body, or line of a stream.")] = 8 << 20
    stream_bytes: Annotated[int, Field(ge=1024, description="Largest stream of documents.")] = 4 << 30
    file_bytes: Annotated[int, Field(ge=1024, description="Largest file of documents, unpacked.")] = 64 << 20
    batch: Annotated[int, Field(ge=1, description="Most documents in one request, except a stream.")] = 1000
    query_characters: Annotated[int, Field(ge=1, description="Longest query.")] = 2000
    searches: Annotated[int, Field(ge=1, description="Most queries in one search request.")] = 100
    answer_bytes: Annotated[int, Field(ge=1024, description="Most bytes of documents in one search answer.")] = 32 << 20
    rate: Annotated[float, Field(gt=0, description="Sustained requests per second from one client.")] = 1000.0
    burst: Annotated[int, Field(ge=1, description="Requests one client may send at once.")] = 2000
    connections: Annotated[int, Field(ge=1, description="Most open connections.")] = 1000
    queue: Annotated[int, Field(ge=1, description="Most waiting writes.")] = 256
    threads: Annotated[int, Field(ge=1, description="Concurrent searches.")] = max(2, os.cpu_count() or 2)
    log_queries: Path | None = Field(
        default=None, description="File that keeps what people search for; a folder for several indexes."
    )
    log_clicks: Path | None = Field(
        default=None, description="File that keeps what people click; a folder for several indexes."
    )
    log_bytes: Annotated[int, Field(ge=1024, description="Size at which such a file begins anew.")] = 16 << 20
    header_bytes: Annotated[int, Field(ge=1024, description="Largest request head.")] = 64 << 10
    body_seconds: Annotated[
        float,
        Field(gt=0, description="Time for a body, or the next piece of a stream, to arrive or be read."),
    ] = 30.0
    header_seconds: Annotated[float, Field(gt=0, description="Time for a request head to arrive.")] = 10.0
    stop_seconds: Annotated[int, Field(ge=1, description="Time to finish answers when stopping.")] = 60
    quality_seconds: Annotated[float, Field(gt=0, description="Shortest time between quality measurements.")] = 10.0

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
        """A list may be given as one string with commas, as in an environment variable."""
        lists = {name: given[name] for name in ("allowed_hosts", "cors_origins") if isinstance(given.get(name), str)}
        return given | {
            name: [part.strip() for part in text.split(",") if part.strip()] for name, text in lists.items()
        }

    @model_validator(mode="after")
    def _check_keys(self) -> Self:
        for name in (None, *self.keys):
            keys = [key.decode() for key, _ in self.opened_by(name).granted]
            if any(len(key) < LEAST_KEY or not key.isascii() or not key.isprintable() or " " in key for key in keys):
                raise ValueError(f"a key needs at least {LEAST_KEY} printable ASCII characters and no spaces")
            if len(set(keys)) < len(keys):
                both = "key and read_key" if name is None else f"two of the keys that open {name!r}"
                raise ValueError(f"{both} are the same; change one")
        if self.key is None and (self.keys or self.read_key is not None):
            raise ValueError(f"{'keys' if self.keys else 'read_key'} requires key as well; set INCDSI_KEY")
        if self.keys and self.indexes is None:
            raise ValueError("keys are those of several indexes; set indexes to their folder, or use key and read_key")
        if self.key is None and "*" in self.cors_origins:
            raise ValueError(
                "cors_origins = * lets any web page call this server, so it requires a key; set INCDSI_KEY, or name "
                "the origins"
            )
        if self.key is None and not self.loopback:
            raise ValueError(f"listening on {self.host} requires a key; set INCDSI_KEY or use 127.0.0.1")
        return self

    def of(self, name: str) -> ServerSettings:
        """The settings of one of several indexes: its folder, its logs, and its keys beside the server's."""
        logs = {"log_queries": self.log_queries, "log_clicks": self.log_clicks}
        own = {kind: folder and folder / f"{name}.jsonl" for kind, folder in logs.items()}
        return self.opened_by(name).model_copy(update={"index": self.folder / name, "indexes": None, **own})

    def of_one(self) -> ServerSettings:
        """The same for `index` alone, whatever is said about several."""
        return self.opened_by(None).model_copy(update={"indexes": None})

    def opened_by(self, name: str | None) -> ServerSettings:
        """The same with the server's keys and those of that index, if it has any."""
        return self.model_copy(update={"keys": {one: keys for one, keys in self.keys.items() if one == name}})

    @property
    def folder(self) -> Path:
        """What is served: the folder of the index, or that of several."""
        return self.indexes or self.index

    @property
    def granted(self) -> list[tuple[bytes, Access]]:
        """Each key, and what it grants."""
        found: list[tuple[bytes, Access]] = []
        for key, read_key in [(self.key, self.read_key), *((own.key, own.read_key) for own in self.keys.values())]:
            pairs: tuple[tuple[SecretStr | None, Access], ...] = ((key, "write"), (read_key, "read"))
            found += [(one.get_secret_value().encode(), access) for one, access in pairs if one is not None]
        return found

    def access(self, key: str) -> Access | None:
        """What a key grants; compares every one in constant time, so that the duration gives nothing away."""
        given = key.encode("utf-8", "replace")
        found = [access for known, access in self.granted if hmac.compare_digest(known, given)]
        return found[0] if found else None

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
        """From a TOML file (default: INCDSI_CONFIG), the environment and flags; InvalidInput says what is wrong."""
        named = config or (Path(os.environ[CONFIG]) if os.environ.get(CONFIG) else None)
        if named is not None and not named.is_file():
            raise InvalidFile("no such file; check the path", path=named)

        class Sourced(cls):  # type: ignore[valid-type, misc]
            model_config = SettingsConfigDict(toml_file=named)

        try:
            made: ServerSettings = Sourced(**flags)
        except ValidationError as error:
            raise InvalidInput("; ".join(map(_sentence, error.errors()))) from None
        except ValueError as error:  # not TOML
            raise InvalidFile(f"not valid TOML ({error})", path=named) from None
        return made


def _sentence(error: Any) -> str:
    name = ".".join(map(str, error["loc"]))
    text = str(error["msg"]).removeprefix("Value error, ")
    return f"setting {name}: {text}" if name else text
