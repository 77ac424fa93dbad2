"""Weights in any form: a state dict, a flat vector, a module or the path of a checkpoint."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from valleyscope.landscape.geometry.vectors import Weights, as_vector
from valleyscope.landscape.network.buffers import with_buffers

AnyWeights = Weights | nn.Module | str | os.PathLike[str]


def network_at(
    model: nn.Module, weights: AnyWeights, *, statistics: bool, name: str = "weights"
) -> tuple[nn.Module, Tensor]:
    """The network with the buffers that come with the weights, and the weights as a flat vector.

    Without ``statistics`` the BatchNorm statistics of the weights are ignored. The model itself is not changed.
    """
    given = _loaded(weights, name)
    vector = as_vector(model, given, name)
    return with_buffers(model, {name: given}, statistics=statistics), vector


def flat_weights(model: nn.Module, weights: AnyWeights, name: str = "weights") -> Tensor:
    """The flat vector of weights in any form."""
    return as_vector(model, _loaded(weights, name), name)


def _loaded(weights: AnyWeights, name: str) -> Weights:
    if isinstance(weights, nn.Module):
        return weights.state_dict()
    if isinstance(weights, str | os.PathLike):
        return _read(Path(weights), name)
    return weights


def _read(path: Path, name: str) -> Mapping[str, Any]:
    if not path.is_file():
        raise ValueError(f"{name} is the path {str(path)!r}, where there is no file; give the path of a checkpoint")
    if path.suffix == ".safetensors":
        return load_file(path)
    found = torch.load(path, map_location="cpu", weights_only=True)
    found = found.get("state_dict", found) if isinstance(found, Mapping) else found
    if not isinstance(found, Mapping):
        raise ValueError(f"{name}: {path.name} holds {type(found).__name__}; expected a state dict")
    return found
