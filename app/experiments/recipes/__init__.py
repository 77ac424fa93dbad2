"""Specs that ship with the project, and overrides of their fields."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.training.settings import STRENGTHS

DEMO = "digits"
# Fields that exclude each other: an override of one removes the recipe's others.
_ALTERNATIVES = (STRENGTHS, ("through", "around", "trajectory"))


def recipe_names() -> list[str]:
    return sorted(entry.name.removesuffix(".yaml") for entry in _folder().iterdir() if entry.name.endswith(".yaml"))


def load_recipe(name: str, overrides: Mapping[str, Any] | None = None) -> Spec:
    """A recipe by name, with overrides applied."""
    return parse_spec(recipe_values(name, overrides), source=f"recipe {name}")


def recipe_values(name: str, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The plain values of a recipe with overrides applied, not validated."""
    return merge(_values(name), overrides or {})


def merge(values: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Replace fields by those of the same path in `overrides`; null removes a field, so its default applies.

    A model or schedule with another name replaces the old one and all its options.

    >>> merge({"seed": 0, "model": {"name": "cnn", "hidden": 8}}, {"seed": 3, "model": {"hidden": 9}})
    {'seed': 3, 'model': {'name': 'cnn', 'hidden': 9}}
    >>> merge({"model": {"name": "cnn", "hidden": 8}}, {"model": {"name": "lenet"}})
    {'model': {'name': 'lenet'}}
    """
    merged = dict(values)
    for field, value in overrides.items():
        for alternatives in _ALTERNATIVES:
            if field in alternatives:
                merged = {key: kept for key, kept in merged.items() if key not in alternatives}
        before = merged.get(field)
        if value is None:
            merged.pop(field, None)
        elif isinstance(value, Mapping) and isinstance(before, Mapping) and not _replaces(before, value):
            merged[field] = merge(before, value)
        else:
            merged[field] = value
    return merged


def describe_recipe(name: str) -> str:
    """The comment at the head of a recipe's file."""
    lines = _text(name).splitlines()
    head = lines[: next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))]
    return " ".join(line.lstrip("# ") for line in head)


def _replaces(before: Mapping[str, Any], value: Mapping[str, Any]) -> bool:
    """Whether an override is of another kind, so the old options do not apply."""
    return "checkpoint" in value or any(
        isinstance(value.get(tag), str) and value[tag] != before.get(tag) for tag in ("name", "kind")
    )


@cache
def _values(name: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load(_text(name))
    return values


@cache
def _text(name: str) -> str:
    if name not in recipe_names():
        raise BadSpec(f"recipe {name!r} is unknown: use one of {', '.join(recipe_names())}")
    return (_folder() / f"{name}.yaml").read_text(encoding="utf-8")


def _folder() -> Traversable:
    return files(__package__)
