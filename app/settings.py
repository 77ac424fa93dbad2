"""Settings of this installation: command options, then the environment (VALLEY_*), then files in the home."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from tomllib import TOMLDecodeError
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from valleyscope.app.database_url import check_database_url, without_secrets
from valleyscope.app.secret_files import BadSecretFile, SecretFilesSource
from valleyscope.app.store_url import check_store_url

TOML_FILE = "valley.toml"
ENVIRONMENT_FILE = ".env"
MEBIBYTE = 2**20
_WILDCARD_HOSTS = {"0.0.0.0": "127.0.0.1", "::": "::1"}
_SECRET_FIELDS = ("api_key", "database", "database_password", "store", "webhook", "webhook_secret")


def _split_names(value: Any) -> Any:
    """`a,b` in the environment, a list in a file."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_names)]
AbsolutePath = Annotated[Path, AfterValidator(lambda path: path.expanduser().absolute())]


class BadSettings(ValueError):
    """Invalid settings; the message names each one, with its value unless it is secret."""


def default_home() -> Path:
    """The user's data folder."""
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share").expanduser() / "valleyscope"


class Settings(BaseSettings):
    """All settings. `valley doctor` prints them without secrets."""

    model_config = SettingsConfigDict(
        env_prefix="VALLEY_", env_ignore_empty=True, extra="forbid", frozen=True, hide_input_in_errors=True
    )

    home: AbsolutePath = Field(default_factory=default_home, description="folder of everything the service keeps")
    data: AbsolutePath | None = Field(None, description="data sets; by default a folder of the user's cache")
    database_password: SecretStr | None = Field(
        None, description="password for a database whose URL has none; best by VALLEY_DATABASE_PASSWORD_FILE"
    )
    database: str = Field(
        default_factory=lambda known: f"sqlite:///{known['home'] / 'valley.db'}" if "home" in known else "",
        min_length=1,
        description="SQLAlchemy URL of jobs and catalogue; by default SQLite under the home",
    )
    store: Annotated[str, AfterValidator(check_store_url)] | None = Field(
        None, description="URL of the store where hosts share no home, such as s3://bucket/prefix; see several-hosts.md"
    )
    host: str = Field("127.0.0.1", min_length=1, description="address to listen at; beyond loopback a key is required")
    port: int = Field(8360, ge=0, le=65535, description="port to listen at; 0 for any free one")
    workers: int | None = Field(None, ge=0, le=1024, description="local workers; by default one a GPU, else one a core")
    api_key: SecretStr | None = Field(None, description="key that clients send as X-API-Key")
    hosts: Names = Field((), description="names by which clients may call this server, besides its own address")
    embed: Names = Field((), description="origins whose pages may show shared views in an iframe, as https://lab.org")
    allowed_models: Names = Field(
        (),
        description="models of other code that clients may use: torchvision:NAME, timm:NAME, hf:NAME, module:factory",
    )
    allowed_datasets: Names = Field(
        (), description="data that clients may use: npz:PATH, folder:PATH@SIZE, hf:NAME@SIZE, module:factory"
    )
    allowed_optimizers: Names = Field((), description="package.module:factory optimizers that clients may use")
    allow_downloads: bool = Field(False, description="let hf: and pretrained networks download what is not here yet")

    webhook: SecretStr | None = Field(None, description="http(s) URL that gets a POST when an experiment ends")
    webhook_secret: SecretStr | None = Field(None, description="secret that signs these POSTs")

    heartbeat: AbsolutePath | None = Field(None, description="file that a worker updates, for `valley health worker`")

    max_gpu_hours: float = Field(24.0, gt=0, description="estimated cost above which a submission must be forced")
    max_epochs: int = Field(2000, ge=1, le=100_000, description="most epochs of a training run or a curve")
    max_resolution: int = Field(401, ge=3, le=401, description="most grid points along an axis")
    max_parameters: int = Field(200_000_000, ge=1, description="most parameters of a network")
    max_queue: int = Field(100, ge=1, description="most experiments queued or running")
    max_body: int = Field(MEBIBYTE, ge=1024, description="most bytes of a request, except uploads")
    max_upload: int = Field(1024 * MEBIBYTE, ge=1024, description="most bytes of an uploaded checkpoint")
    max_uploads: int = Field(200, ge=0, description="most uploaded checkpoints")
    max_landscape: int = Field(64 * MEBIBYTE, ge=1024, description="most bytes of the files of an uploaded landscape")
    key_failures: int = Field(10, ge=1, description="wrong keys per minute from one address before it is blocked")

    lease_seconds: float = Field(
        15.0, ge=5, description="seconds without a heartbeat after which a process counts as dead (Postgres)"
    )
    stall_seconds: float = Field(
        120.0, ge=5, description="seconds without progress after which the process of a task is replaced"
    )

    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="what the service logs")
    log_format: Literal["json", "text"] = Field("json", description="json for machines, text for people")

    @classmethod
    def load(cls, **options: Any) -> Self:
        """Settings, with command options first; options that are None are ignored."""
        given = {name: value for name, value in options.items() if value is not None}
        try:
            return cls(**given)
        except ValidationError as error:
            raise BadSettings("; ".join(_explain(error))) from None
        except BadSecretFile as error:
            raise BadSettings(str(error)) from None
        except (TOMLDecodeError, UnicodeDecodeError) as error:
            raise BadSettings(f"{TOML_FILE} under the home is not valid TOML: {error}") from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  (its path depends on the home)
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        secret_files = SecretFilesSource(settings_cls)
        given = secret_files() | env_settings() | init_settings()
        home = Path(given.get("home") or default_home()).expanduser()
        return (
            init_settings,
            env_settings,
            secret_files,
            DotEnvSettingsSource(settings_cls, env_file=home / ENVIRONMENT_FILE, dotenv_filtering="only_existing"),
            TomlConfigSettingsSource(settings_cls, toml_file=home / TOML_FILE),
            file_secret_settings,
        )

    @field_validator("database", mode="after")
    @classmethod
    def _check_database(cls, url: str, info: ValidationInfo) -> str:
        password: SecretStr | None = info.data.get("database_password")
        return check_database_url(url, None if password is None else password.get_secret_value())

    @field_validator("api_key")
    @classmethod
    def _check_api_key(cls, key: SecretStr | None) -> SecretStr | None:
        text = "" if key is None else key.get_secret_value()
        if not text.isascii() or not text.isprintable() or text != text.strip():
            raise ValueError("must be printable ASCII without spaces around it: make one with `openssl rand -hex 24`")
        return key

    @field_validator("embed")
    @classmethod
    def _check_embed(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not re.fullmatch(r"https?://(\*\.)?[\w.-]+(:\d{1,5})?", origin, re.ASCII):
                raise ValueError(f"{origin!r} is not an origin: use https://lab.example.org, without a path")
        return origins

    @field_validator("webhook")
    @classmethod
    def _check_webhook(cls, url: SecretStr | None) -> SecretStr | None:
        if url is not None and not url.get_secret_value().startswith(("http://", "https://")):
            raise ValueError("must be an address such as https://example.org/hook")
        return url

    def check_exposure(self) -> None:
        """Raise BadSettings if other machines can reach the server and it has no key."""
        if not self.loopback and self.api_key is None:
            raise BadSettings(
                f"host={self.host!r} can be reached from other machines: set VALLEY_API_KEY, or listen at 127.0.0.1"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def address(self) -> str:
        """The URL of the server for clients on this machine."""
        host = _WILDCARD_HOSTS.get(self.host.strip("[]"), self.host.strip("[]"))
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def sqlite(self) -> bool:
        return self.database.startswith("sqlite")

    def shown(self) -> Iterator[tuple[str, str]]:
        """Each setting with its value, secrets and passwords masked."""
        for name in type(self).model_fields:
            value = getattr(self, name)
            if isinstance(value, tuple):
                value = ", ".join(value) or None
            yield name, "-" if value is None else without_secrets(str(value)) if name == "database" else str(value)


def _explain(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False):
        name = ".".join(map(str, detail["loc"]))
        if detail["type"] == "extra_forbidden":
            yield f"setting {name!r} is unknown: use one of {', '.join(Settings.model_fields)}"
            continue
        value = "" if name in _SECRET_FIELDS else f" = {detail['input']!r}"
        yield f"setting {name} (VALLEY_{name.upper()}){value}: {detail['msg'].removeprefix('Value error, ')}"
