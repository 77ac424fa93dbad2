"""The buffers and frozen parameters of a network: the entries of a state dict besides the weights that move.

On a path or plane through several networks only these weights change, so all else must be equal in all of them, except
BatchNorm statistics that are recomputed at every point.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from valleyscope.landscape.geometry.parameter_choice import Parameters, frozen_parameters
from valleyscope.landscape.geometry.vectors import as_vector
from valleyscope.landscape.geometry.weight_files import StateDict, Weights, loaded
from valleyscope.landscape.geometry.wrapped_networks import unwrapped
from valleyscope.landscape.network.copying import copied

_STATISTICS = ("running_mean", "running_var", "num_batches_tracked")


def with_buffers(
    model: nn.Module, networks: Mapping[str, Weights], *, statistics: bool, parameters: Parameters = None
) -> nn.Module:
    """The model, unwrapped, with the common buffers and frozen parameters of these networks; a copy if its own differ.

    Without ``statistics`` BatchNorm statistics are ignored. It is an error if two state dicts differ in a buffer or in
    a parameter that does not move.
    """
    model = unwrapped(model)
    ignored = set() if statistics else _batch_norm_buffers(model)
    frozen = frozen_parameters(model, parameters)
    given_states = {
        network: state
        for network, weights in networks.items()
        if isinstance(state := loaded(model, weights, network), Mapping)
    }
    found: dict[str, Tensor] = {}
    for name, own in (*model.named_buffers(remove_duplicate=False), *frozen.items()):
        if name in ignored:
            continue
        value = _common_value(model, name, own.detach(), given_states, is_buffer=name not in frozen)
        if value is not None and not torch.equal(value, own):
            found[name] = value
    if not found:
        return model
    changed = copied(model)
    with torch.no_grad():
        for name, own in (
            *changed.named_buffers(remove_duplicate=False),
            *changed.named_parameters(remove_duplicate=False),
        ):
            if name in found:
                own.copy_(found[name])
    return changed


def network_at(
    model: nn.Module, weights: Weights, *, statistics: bool, parameters: Parameters = None, name: str = "weights"
) -> tuple[nn.Module, Tensor]:
    """The model with the buffers and frozen parameters that come with the weights, and the weights as a flat vector."""
    given = loaded(model, weights, name)
    network = with_buffers(model, {name: given}, statistics=statistics, parameters=parameters)
    return network, as_vector(network, given, name, parameters)


def _common_value(
    model: nn.Module, name: str, own: Tensor, states: Mapping[str, StateDict], *, is_buffer: bool
) -> Tensor | None:
    """The value of a buffer or frozen parameter in all networks that have it; None if none has it."""
    given = {network: torch.as_tensor(state[name]).to(own) for network, state in states.items() if name in state}
    if not given:
        return None
    what = "buffer" if is_buffer else "frozen parameter"
    remedy = _remedy(model, name) if is_buffer else "; parameters='*' moves all parameters"
    (first, value), *others = given.items()
    for other, another in others:
        if another.shape != value.shape or not torch.equal(value, another):
            raise ValueError(
                f"the state dicts of {first!r} and {other!r} differ in the {what} {name!r}, which has no value "
                f"between them{remedy}"
            )
    if value.shape != own.shape:
        raise ValueError(
            f"{what} {name!r} has shape {tuple(value.shape)} in {first!r}, but {tuple(own.shape)} in "
            f"{type(model).__name__}: the state dict belongs to another architecture"
        )
    return value


def _batch_norm_buffers(model: nn.Module) -> set[str]:
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, _BatchNorm)}
    return {f"{name}.{key}".lstrip(".") for name in layers for key in _STATISTICS}


def _remedy(model: nn.Module, name: str) -> str:
    return "; use batch_norm='population' or 'running'" if name in _batch_norm_buffers(model) else ""
