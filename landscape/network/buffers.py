"""The buffers of a network: the entries of a state dict besides weights.

Flat vectors hold weights only. On a path or plane through several networks only weights change, so the buffers must be
equal in all of them, except BatchNorm statistics that are recomputed at every point.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.geometry.vectors import Weights
from valleyscope.landscape.network.copying import copied

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def with_buffers(model: nn.Module, networks: Mapping[str, Weights], *, statistics: bool) -> nn.Module:
    """The model with the common buffers of these networks; a copy if its own differ.

    Without ``statistics`` BatchNorm statistics are ignored. It is an error if two state dicts differ in a buffer.
    """
    ignored = set() if statistics else _batch_norm_buffers(model)
    found: dict[str, Tensor] = {}
    for name, buffer in model.named_buffers(remove_duplicate=False):
        given = {
            network: torch.as_tensor(weights[name]).to(buffer)
            for network, weights in networks.items()
            if isinstance(weights, Mapping) and name in weights
        }
        if name in ignored or not given:
            continue
        (first, value), *others = given.items()
        for other, another in others:
            if another.shape != value.shape or not torch.equal(value, another):
                raise ValueError(
                    f"the state dicts of {first!r} and {other!r} differ in the buffer {name!r}, which has no value "
                    f"between them{_remedy(model, name)}"
                )
        if value.shape != buffer.shape:
            raise ValueError(
                f"buffer {name!r} has shape {tuple(value.shape)} in {first!r}, but {tuple(buffer.shape)} in "
                f"{type(model).__name__}: the state dict belongs to another architecture"
            )
        if not torch.equal(value, buffer):
            found[name] = value
    if not found:
        return model
    changed = copied(model)
    with torch.no_grad():
        for name, buffer in changed.named_buffers(remove_duplicate=False):
            if name in found:
                buffer.copy_(found[name])
    return changed


def _batch_norm_buffers(model: nn.Module) -> set[str]:
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, _BatchNorm)}
    return {f"{name}.{key}".lstrip(".") for name in layers for key in _STATISTICS}


def _remedy(model: nn.Module, name: str) -> str:
    return "; use batch_norm='population' or 'running'" if name in _batch_norm_buffers(model) else ""
