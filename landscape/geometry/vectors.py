"""Weights as one flat vector: the parameters of a network that move, in the order of ``model.parameters()``.

Buffers (BatchNorm statistics) and frozen parameters are not part of it (see ``parameter_choice``). A parameter that
several modules share appears once.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from valleyscope.landscape.geometry.parameter_choice import Parameters, frozen_parameters, moving_parameters
from valleyscope.landscape.geometry.weight_files import StateDict, Weights, loaded

__all__ = ["StateDict", "Weights", "as_vector", "check_finite", "dimension", "flat_tensor", "flatten", "unflatten"]


def dimension(model: nn.Module, parameters: Parameters = None) -> int:
    """Number of weights that move: the length of the network's flat vectors."""
    return sum(parameter.numel() for parameter in moving_parameters(model, parameters).values())


def flatten(model: nn.Module, state_dict: Weights | None = None, *, parameters: Parameters = None) -> Tensor:
    """The parameters of the network, or of other weights of it, as one new vector.

    ``state_dict`` may also be a module or the path of a file. ``parameters`` are patterns of the names of the
    parameters that move, by default those that require a gradient. The vector has the data type and device of the
    model's parameters. Buffers and other entries of the state dict are ignored. A missing parameter, another shape, a
    weight that is not finite, a frozen weight that differs from the model's, or a floating-point tensor that the model
    does not have is an error.

    >>> model = nn.Linear(2, 1)
    >>> flatten(model, {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0])})
    tensor([1., 2., 3.])
    """
    moving = moving_parameters(model, parameters)
    given = None if state_dict is None else loaded(model, state_dict, "state_dict")
    if isinstance(given, Tensor):
        return as_vector(model, given, "state_dict", parameters).clone()
    if given is None:
        found = {name: parameter.detach() for name, parameter in moving.items()}
    else:
        found = _parameters_in(model, given, moving)
        _check_frozen(model, given, parameters)
    for name, value in found.items():
        check_finite(value, f"parameter {name!r}")
    return torch.cat([value.reshape(-1) for value in found.values()])


def views(model: nn.Module, vector: Tensor, parameters: Parameters = None) -> dict[str, Tensor]:
    """Views of the vector as the model's parameters that move, by name."""
    moving = moving_parameters(model, parameters)
    size = dimension(model, parameters)
    if vector.dim() != 1 or vector.numel() != size:
        raise ValueError(
            f"vector has shape {tuple(vector.shape)}, but {type(model).__name__} has {size} weights: "
            f"expected shape ({size},)"
        )
    cut: dict[str, Tensor] = {}
    offset = 0
    for name, parameter in moving.items():
        cut[name] = vector[offset : offset + parameter.numel()].view(parameter.shape)
        offset += parameter.numel()
    return cut


def unflatten(model: nn.Module, vector: Tensor, *, parameters: Parameters = None) -> dict[str, Any]:
    """A state dict with the parameters from the vector, and the current buffers and frozen parameters of the model.

    The tensors are copies. Names that share a parameter get the same tensor.
    """
    moved = {name: value.clone() for name, value in views(model, vector.detach(), parameters).items()}
    aliases = _aliases(model)
    state: dict[str, Any] = {}
    for name, value in model.state_dict().items():
        if aliases.get(name) in moved:
            state[name] = moved[aliases[name]]
        else:
            state[name] = value.detach().clone() if isinstance(value, Tensor) else value
    return state


def as_vector(model: nn.Module, weights: Weights, name: str = "weights", parameters: Parameters = None) -> Tensor:
    """The flat vector of weights in any form; errors call them ``name``.

    The result has the data type and device of the model's parameters
    and may share memory with a vector that already has both.
    """
    given = loaded(model, weights, name)
    if isinstance(given, Mapping):
        try:
            return flatten(model, given, parameters=parameters)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    size = dimension(model, parameters)
    like = next(iter(moving_parameters(model, parameters).values()))
    if given.dim() != 1 or given.numel() != size:
        raise ValueError(
            f"{name} has shape {tuple(given.shape)}, but {type(model).__name__} has {size} weights"
            f"{_that_move(model, size)}: give a state dict of this model or a flat vector of shape ({size},)"
        )
    check_finite(given, name)
    return given.to(dtype=like.dtype, device=like.device)


def flat_tensor(vector: object, name: str, model: nn.Module | None = None, parameters: Parameters = None) -> Tensor:
    """Weights in any form as a flat vector; a state dict or path needs its model, which knows the order."""
    if model is not None:
        return as_vector(model, vector, name, parameters)  # type: ignore[arg-type]
    if isinstance(vector, nn.Module):
        return flatten(vector, parameters=parameters)
    if isinstance(vector, Mapping | str | os.PathLike):
        form = "state dict" if isinstance(vector, Mapping) else "path"
        raise ValueError(f"{name} is a {form}; give a flat vector: flatten(model, state_dict), or add model=...")
    return torch.as_tensor(vector).detach()


def _that_move(model: nn.Module, size: int) -> str:
    total = sum(parameter.numel() for parameter in model.parameters())
    return "" if size == total else f" that move, of {total}"


def _aliases(model: nn.Module) -> dict[str, str]:
    """All names of each parameter, mapped to its first name (the one in ``named_parameters``)."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in model.named_parameters(remove_duplicate=False)}


def _parameters_in(model: nn.Module, state_dict: StateDict, moving: Mapping[str, nn.Parameter]) -> dict[str, Tensor]:
    """The model's parameters that move from a state dict, in order, each under any of its names."""
    names: dict[str, list[str]] = {}
    for alias, name in _aliases(model).items():
        names.setdefault(name, []).append(alias)
    found: dict[str, Tensor] = {}
    for name, parameter in moving.items():
        present = next((alias for alias in names[name] if alias in state_dict), None)
        if present is None:
            raise ValueError(
                f"state dict has no parameter {name!r} (shape {tuple(parameter.shape)}) of {type(model).__name__}; "
                f"it has {_first_names(list(state_dict))}"
            )
        value = torch.as_tensor(state_dict[present]).detach()
        if value.shape != parameter.shape:
            raise ValueError(
                f"parameter {name!r} has shape {tuple(value.shape)} in the state dict, but "
                f"{tuple(parameter.shape)} in {type(model).__name__}: the weights belong to another architecture"
            )
        found[name] = value.to(dtype=parameter.dtype, device=parameter.device)
    _check_no_unknown_weights(model, state_dict)
    return found


def _check_frozen(model: nn.Module, state_dict: StateDict, parameters: Parameters) -> None:
    for name, parameter in frozen_parameters(model, parameters).items():
        if name not in state_dict:
            continue
        value = torch.as_tensor(state_dict[name]).detach().to(dtype=parameter.dtype, device=parameter.device)
        if value.shape != parameter.shape or not torch.equal(value, parameter.detach()):
            raise ValueError(
                f"parameter {name!r} does not move (it is frozen, or not in parameters=), but differs between the "
                "state dict and the model: load the state dict into the model first, or move all by parameters='*'"
            )


def _check_no_unknown_weights(model: nn.Module, state_dict: StateDict) -> None:
    known = {*model.state_dict(), *(name for name, _ in model.named_buffers(remove_duplicate=False))}
    unknown = [name for name, value in state_dict.items() if name not in known and _has_floats(value)]
    if unknown:
        raise ValueError(
            f"state dict has weights that {type(model).__name__} does not have: {_first_names(unknown)}; use the "
            "model they belong to, or remove them"
        )


def _has_floats(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.is_floating_point()
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def _first_names(names: list[str]) -> str:
    if not names:
        return "no entries"
    shown = ", ".join(repr(name) for name in names[:5])
    return shown + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def check_finite(value: Tensor, name: str) -> None:
    """Raise an error if an entry is NaN or infinite."""
    # One pass without extra memory: aminmax returns NaN if there is one.
    if value.numel() and not all(torch.isfinite(end) for end in value.aminmax()):
        count = int(value.numel() - torch.isfinite(value).sum())
        raise ValueError(
            f"{name} has {count} of {value.numel()} values that are not finite (NaN or infinite): "
            "the training that made it diverged, or the file is damaged"
        )
