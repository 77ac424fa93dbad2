"""Architectures by name, plug-in architectures, and their cost.

Describing architectures needs no torch; building them imports it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from valleyscope.training.models.registry import Architecture, build_model, describe_models

if TYPE_CHECKING:
    from valleyscope.training.models.operation_count import count_parameters, multiply_adds

__all__ = ["Architecture", "build_model", "count_parameters", "describe_models", "multiply_adds"]


def __getattr__(name: str) -> Any:
    if name in ("count_parameters", "multiply_adds"):
        return getattr(import_module("valleyscope.training.models.operation_count"), name)
    raise AttributeError(f"module 'valleyscope.training.models' has no attribute {name!r}")
