"""Reads docker-compose.yml and the Dockerfile as an engine does: choices, profiles, defaults of an image."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

HOUSE = Path(__file__).parents[2]
COMPOSE_FILE = HOUSE / "docker-compose.yml"
_VARIABLE = re.compile(r"\$\{(?P<name>\w+)(?:(?P<how>:?[-?])(?P<other>[^}]*))?\}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_REHEARSED = {
    *("profiles", "command", "entrypoint", "environment", "env_file", "secrets", "ports", "volumes", "tmpfs"),
    *("depends_on", "healthcheck", "stop_signal", "stop_grace_period", "deploy", "image", "build"),
}
_ENGINE_ONLY = {
    *("restart", "init", "read_only", "cap_drop", "security_opt", "networks", "logging", "shm_size"),
}
"""What only an engine can do. A key that is in neither set makes the rehearsal fail: it would not be rehearsed."""


@dataclass(frozen=True)
class Image:
    """What a target of the Dockerfile brings along."""

    environment: dict[str, str]
    entrypoint: list[str]
    command: list[str]
    user: str | None
    healthcheck: list[str] | None


@dataclass(frozen=True)
class Service:
    """A service as the file describes it, after interpolation."""

    name: str
    definition: dict[str, Any]
    image: Image | None

    @property
    def command(self) -> list[str]:
        """The whole command line: entry point of the image, then the service's command, or else the image's."""
        own = self.definition.get("command")
        if self.image is None:
            return list(own or [])
        return [*self.image.entrypoint, *(own if own is not None else self.image.command)]

    @property
    def environment(self) -> dict[str, str]:
        """Of the image, then of files, then what the service itself says."""
        found = dict(self.image.environment) if self.image else {}
        for file in self.definition.get("env_file", []):
            path = HOUSE / file["path"]
            if file["required"] or path.exists():
                found |= read_choices(path)
        return found | {name: str(value) for name, value in self.definition.get("environment", {}).items()}

    @property
    def healthcheck(self) -> list[str]:
        kind, *command = self.definition["healthcheck"]["test"]
        assert kind == "CMD", f"{self.name}: only the form CMD is rehearsed, this is {kind}"
        return command

    @property
    def replicas(self) -> int:
        return int(self.definition.get("deploy", {}).get("replicas", 1))

    @property
    def grace(self) -> float:
        return seconds(self.definition.get("stop_grace_period", "10s"))

    @property
    def published(self) -> list[tuple[str, int, int]]:
        """Address, port of the machine, port of the container."""
        found = [str(entry).rsplit(":", 2) for entry in self.definition.get("ports", [])]
        return [(host, int(outer), int(inner)) for host, outer, inner in found]

    @property
    def mounts(self) -> dict[str, str]:
        """Where each volume is mounted."""
        return {target: name for name, target in (entry.split(":")[:2] for entry in self.definition.get("volumes", []))}

    @property
    def needs(self) -> dict[str, str]:
        return {name: how["condition"] for name, how in self.definition.get("depends_on", {}).items()}


def read_compose(profile: str, choices: Mapping[str, str]) -> dict[str, Service]:
    """The services of a profile."""
    services = {}
    for name, definition in read_document(choices)["services"].items():
        unknown = definition.keys() - _REHEARSED - _ENGINE_ONLY
        assert not unknown, f"{name}: the rehearsal does not know {sorted(unknown)}"
        if profile in definition.get("profiles", [profile]):
            target = definition.get("build", {}).get("target")
            services[name] = Service(name, definition, read_image(target) if target else None)
    return services


def read_document(choices: Mapping[str, str]) -> dict[str, Any]:
    document = _interpolated(yaml.safe_load(COMPOSE_FILE.read_text(encoding="utf-8")), choices)
    assert isinstance(document, dict)
    return document


def read_choices(path: Path = HOUSE / ".env.example") -> dict[str, str]:
    """The variables of an environment file."""
    lines = [line.partition("=") for line in path.read_text(encoding="utf-8").splitlines() if "=" in line]
    return {name: value for name, _, value in lines if not name.startswith("#")}


def variables() -> set[str]:
    """The names that docker-compose.yml asks the environment for."""
    text = "\n".join(line.partition("# ")[0] for line in COMPOSE_FILE.read_text(encoding="utf-8").splitlines())
    return {found["name"] for found in _VARIABLE.finditer(text)}


def read_image(target: str) -> Image:
    """Defaults of a target of the Dockerfile, with those of the stages that it is built from."""
    image: dict[str, Any] = {"environment": {}, "entrypoint": [], "command": [], "user": None, "healthcheck": None}
    for word, rest in _stages()[target]:
        match word:
            case "ENV":
                image["environment"] |= dict(part.split("=", 1) for part in rest.split())
            case "ENTRYPOINT":
                image["entrypoint"] = json.loads(rest)
            case "CMD":
                image["command"] = json.loads(rest)
            case "USER":
                image["user"] = rest
            case "HEALTHCHECK":
                image["healthcheck"] = json.loads(rest[rest.index("[") :])
    return Image(**image)


def seconds(text: str) -> float:
    """A duration of compose.

    >>> seconds("1m30s")
    90.0
    """
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)(ms|s|m|h)", text))


def _stages() -> dict[str, list[tuple[str, str]]]:
    stages: dict[str, list[tuple[str, str]]] = {}
    current: list[tuple[str, str]] = []
    for word, rest in _instructions():
        if word == "FROM":
            parent, _, name = rest.split()
            current = stages[name] = list(stages.get(parent, []))
        current.append((word, rest))
    return stages


def _instructions() -> Iterator[tuple[str, str]]:
    text = (HOUSE / "Dockerfile").read_text(encoding="utf-8")
    plain = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for line in plain.replace("\\\n", " ").splitlines():
        word, _, rest = line.strip().partition(" ")
        if word:
            yield word, rest.strip()


def _interpolated(value: Any, choices: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _interpolated(entry, choices) for name, entry in value.items()}
    if isinstance(value, list):
        return [_interpolated(entry, choices) for entry in value]
    return _VARIABLE.sub(lambda found: _value(found, choices), value) if isinstance(value, str) else value


def _value(found: re.Match[str], choices: Mapping[str, str]) -> str:
    given, how = choices.get(found["name"]), found["how"] or ""
    missing = given is None or (":" in how and not given)
    if missing and how.endswith("?"):
        raise ValueError(f"{found['name']}: {found['other']}")
    return (found["other"] or "") if missing else str(given)
