"""Weights in any form: a state dict, a flat vector, a module, or the path of a file that holds a state dict."""

from __future__ import annotations

import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from valleyscope.landscape.geometry.wrapped_networks import renamed, unwrapped

StateDict = Mapping[str, Any]
"""What ``model.state_dict()`` returns: tensors by name (and the extra state that some modules add)."""

Weights = StateDict | Tensor | NDArray[np.floating] | nn.Module | str | os.PathLike[str]
"""One point of weight space: a state dict, a flat vector, a module, or a path (.safetensors, or .pt of torch.save)."""

_NESTED = ("state_dict", "model_state_dict", "model", "weights", "params")


def loaded(model: nn.Module | None, weights: Weights, name: str = "weights") -> StateDict | Tensor:
    """The weights as a state dict, with the names of the model, or as a flat vector; errors call them ``name``."""
    if isinstance(weights, nn.Module):
        weights = unwrapped(weights).state_dict()
    elif isinstance(weights, str | os.PathLike):
        weights = read_state_dict(weights, name)
    if isinstance(weights, Mapping):
        if model is None:
            return weights
        buffers = (key for key, _ in model.named_buffers(remove_duplicate=False))
        parameters = (key for key, _ in model.named_parameters(remove_duplicate=False))
        return renamed(weights, [*model.state_dict(), *parameters, *buffers])
    try:
        return torch.as_tensor(weights).detach()
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} is a {type(weights).__name__}; give a state dict, a flat vector, a module or a path ({error})"
        ) from None


def read_state_dict(path: str | os.PathLike[str], name: str = "weights") -> StateDict:
    """The state dict of a file: ``.safetensors``, else a file of ``torch.save``, which is read without running code."""
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"{name}: there is no file {os.fspath(path)!r}")
    try:
        if file.suffix == ".safetensors":
            from safetensors.torch import load_file

            return load_file(file)
        content = torch.load(file, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"{name}: {os.fspath(path)!r} holds objects other than tensors, which are not loaded because that can run "
            f"code; save model.state_dict() instead ({reason})"
        ) from None
    except Exception as error:  # a damaged file may raise anything
        raise ValueError(
            f"{name}: {os.fspath(path)!r} is neither a .safetensors file nor a state dict of torch.save ({error})"
        ) from None
    for key in _NESTED:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
            break
    if not isinstance(content, Mapping) or not any(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{name}: {os.fspath(path)!r} holds a {type(content).__name__}, not a state dict")
    return content
