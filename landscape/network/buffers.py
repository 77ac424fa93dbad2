"""The buffers of a network: what a state dict holds besides weights.

Flat vectors are weights alone. A path or plane through several networks is of one network with moving weights, so what
else they hold has to be the same in all of them, but for statistics of BatchNorm that are taken anew at every point.
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
    """The model with the buffers that these networks, given by name, have in common; a copy if it has others.

    Without ``statistics`` those of BatchNorm layers do not count. A buffer in which two state dicts differ is refused.
    """
    left_out = set() if statistics else _batch_norm_buffers(model)
    found: dict[str, Tensor] = {}
    for name, buffer in model.named_buffers(remove_duplicate=False):
        given = {
            network: torch.as_tensor(weights[name]).to(buffer)
            for network, weights in networks.items()
            if isinstance(weights, Mapping) and name in weights
        }
        if name in left_out or not given:
            continue
        (first, value), *others = given.items()
        for other, another in others:
            if another.shape != value.shape or not torch.equal(value, another):
                raise ValueError(
                    f"the state dicts of {first!r} and {other!r} differ in the buffer {name!r}, which is no weight: "
                    f"between them it has no value{_remedy(model, name)}"
                )
        if value.shape != buffer.shape:
            raise ValueError(
                f"buffer {name!r} has shape {tuple(value.shape)} in {first!r}, but {tuple(buffer.shape)} in "
                f"{type(model).__name__}: the state dict is of another architecture"
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
