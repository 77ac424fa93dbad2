"""Weights as one flat vector: the parameters of a network in the order of ``model.parameters()``.

Buffers (BatchNorm statistics) are not part of it. A parameter that several modules share appears once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

StateDict = Mapping[str, Any]
"""What ``model.state_dict()`` returns: tensors by name (and the extra state that some modules add)."""

Weights = StateDict | Tensor
"""One point of weight space: a state dict or a flat vector."""


def dimension(model: nn.Module) -> int:
    """Number of weights of the network: the length of its flat vectors."""
    size = sum(parameter.numel() for parameter in model.parameters())
    if size == 0:
        raise ValueError(f"{type(model).__name__} has no parameters; a landscape needs a network with weights")
    return size


def flatten(model: nn.Module, state_dict: StateDict | None = None) -> Tensor:
    """The parameters of the network, or of a state dict of it, as one new vector.

    The vector has the data type and device of the model's parameters. Buffers and other entries of the state dict are
    ignored. A missing parameter, another shape, a weight that is not finite, or a floating-point tensor that the model
    does not have is an error.

    >>> model = nn.Linear(2, 1)
    >>> flatten(model, {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.tensor([3.0])})
    tensor([1., 2., 3.])
    """
    dimension(model)
    if state_dict is None:
        found = {name: parameter.detach() for name, parameter in model.named_parameters()}
    else:
        found = _parameters_in(model, state_dict)
    for name, value in found.items():
        check_finite(value, f"parameter {name!r}")
    return torch.cat([value.reshape(-1) for value in found.values()])


def views(model: nn.Module, vector: Tensor) -> dict[str, Tensor]:
    """Views of the vector as the model's parameters, by name."""
    size = dimension(model)
    if vector.dim() != 1 or vector.numel() != size:
        raise ValueError(
            f"vector has shape {tuple(vector.shape)}, but {type(model).__name__} has {size} weights: "
            f"expected shape ({size},)"
        )
    cut: dict[str, Tensor] = {}
    offset = 0
    for name, parameter in model.named_parameters():
        cut[name] = vector[offset : offset + parameter.numel()].view(parameter.shape)
        offset += parameter.numel()
    return cut


def unflatten(model: nn.Module, vector: Tensor) -> dict[str, Any]:
    """A state dict with the parameters from the vector and the current buffers of the model.

    The tensors are copies. Names that share a parameter get the same tensor.
    """
    parameters = {name: value.clone() for name, value in views(model, vector.detach()).items()}
    aliases = _aliases(model)
    state: dict[str, Any] = {}
    for name, value in model.state_dict().items():
        if name in aliases:
            state[name] = parameters[aliases[name]]
        else:
            state[name] = value.detach().clone() if isinstance(value, Tensor) else value
    return state


def as_vector(model: nn.Module, weights: Weights, name: str = "weights") -> Tensor:
    """The flat vector of a state dict or flat vector; errors call it ``name``.

    The result has the data type and device of the model's parameters
    and may share memory with a vector that already has both.
    """
    if isinstance(weights, Mapping):
        try:
            return flatten(model, weights)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    size = dimension(model)
    like = next(model.parameters())
    vector = torch.as_tensor(weights).detach()
    if vector.dim() != 1 or vector.numel() != size:
        raise ValueError(
            f"{name} has shape {tuple(vector.shape)}, but {type(model).__name__} has {size} weights: give a state "
            f"dict of this model or a flat vector of shape ({size},)"
        )
    check_finite(vector, name)
    return vector.to(dtype=like.dtype, device=like.device)


def flat_tensor(vector: object, name: str) -> Tensor:
    """A flat vector as a tensor; a state dict is an error, since only its model knows the order."""
    if isinstance(vector, Mapping):
        raise ValueError(f"{name} is a state dict; give a flat vector: flatten(model, state_dict)")
    return torch.as_tensor(vector).detach()


def _aliases(model: nn.Module) -> dict[str, str]:
    """All names of each parameter, mapped to its first name (the one in ``named_parameters``)."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    return {name: first[id(parameter)] for name, parameter in model.named_parameters(remove_duplicate=False)}


def _parameters_in(model: nn.Module, state_dict: StateDict) -> dict[str, Tensor]:
    """The model's parameters from a state dict, in order, each under any of its names."""
    names: dict[str, list[str]] = {}
    for alias, name in _aliases(model).items():
        names.setdefault(name, []).append(alias)
    found: dict[str, Tensor] = {}
    for name, parameter in model.named_parameters():
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
