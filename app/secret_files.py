"""Settings from files: VALLEY_NAME_FILE names a file whose text is the value of VALLEY_NAME.

So a secret is neither on a command line nor in the environment, which child processes and `docker inspect` see.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import PydanticBaseSettingsSource

PREFIX = "VALLEY_"
SUFFIX = "_FILE"
_MAX_BYTES = 65_536


class BadSecretFile(ValueError):
    """The file of a setting cannot be used; the message never contains its content."""


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def read_setting_file(name: str, environment: Mapping[str, str] | None = None) -> str | None:
    """The text of the file that VALLEY_NAME_FILE names, without trailing line breaks; None if it is not set."""
    variables = os.environ if environment is None else environment
    pointer = f"{variable(name)}{SUFFIX}"
    path = variables.get(pointer)
    if not path:
        return None
    if variables.get(variable(name)):
        raise BadSecretFile(f"both {variable(name)} and {pointer} are set: unset one of them")
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise BadSecretFile(f"{pointer}={path}: {error.strerror or error}") from None
    if len(content) > _MAX_BYTES:
        raise BadSecretFile(f"{pointer}={path} has more than {_MAX_BYTES} bytes: it must hold one value")
    try:
        text = content.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadSecretFile(f"{pointer}={path} is not UTF-8 text") from None
    if not text:
        raise BadSecretFile(f"{pointer}={path} is empty: write the value into it")
    return text


def without_settings(environment: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The environment without some settings, neither as variables nor as files."""
    removed = {form for name in names for form in (variable(name), f"{variable(name)}{SUFFIX}")}
    return {name: value for name, value in environment.items() if name not in removed}


class SecretFilesSource(PydanticBaseSettingsSource):
    """Gives pydantic the settings that have a file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002
        return read_setting_file(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        found = {name: read_setting_file(name) for name in self.settings_cls.model_fields}
        return {name: text for name, text in found.items() if text is not None}
