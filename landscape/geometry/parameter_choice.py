"""Which parameters of a network move: those that require a gradient, or those whose names match patterns.

Flat vectors hold the parameters that move, in the order of ``model.parameters()``. The others stay as they are in the
model, bit by bit, on every path and plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from valleyscope.landscape.geometry.wrapped_networks import plain_name

Parameters = str | Sequence[str] | None
"""Patterns of parameter names such as ``"*.lora_*"``; ``"*"`` is all. None: those that require a gradient."""


def moving_parameters(model: nn.Module, parameters: Parameters = None) -> dict[str, nn.Parameter]:
    """The parameters that move, by name and in order.

    Without patterns these are the parameters that require a gradient, or all of a network in which none does.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    >>> list(moving_parameters(model, "1.*"))
    ['1.weight', '1.bias']
    """
    named = dict(model.named_parameters())
    if not any(parameter.numel() for parameter in named.values()):
        raise ValueError(f"{type(model).__name__} has no parameters; a landscape needs a network with weights")
    if parameters is None:
        return {name: parameter for name, parameter in named.items() if parameter.requires_grad} or named
    patterns = [parameters] if isinstance(parameters, str) else list(parameters)
    if not all(isinstance(pattern, str) for pattern in patterns):
        raise ValueError(f"parameters is {parameters!r}; give patterns of parameter names such as '*.lora_*'")
    aliases: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        aliases.setdefault(id(parameter), []).append(plain_name(name))
    matched = {
        pattern: {key for key, names in aliases.items() if any(fnmatchcase(name, pattern) for name in names)}
        for pattern in patterns
    }
    for pattern, keys in matched.items():
        if not keys:
            known = ", ".join(repr(plain_name(name)) for name in list(named)[:5])
            more = f" and {len(named) - 5} more" if len(named) > 5 else ""
            raise ValueError(
                f"parameters: the pattern {pattern!r} matches no parameter of {type(model).__name__}; it has {known}"
                f"{more}"
            )
    wanted = set().union(*matched.values())
    if not wanted:
        raise ValueError("parameters is empty; give patterns of parameter names such as '*.lora_*', or '*' for all")
    return {name: parameter for name, parameter in named.items() if id(parameter) in wanted}


def frozen_parameters(model: nn.Module, parameters: Parameters = None) -> dict[str, nn.Parameter]:
    """The parameters that do not move, under all their names."""
    moving = {id(parameter) for parameter in moving_parameters(model, parameters).values()}
    named = model.named_parameters(remove_duplicate=False)
    return {name: parameter for name, parameter in named if id(parameter) not in moving}


def moved_text(model: nn.Module, parameters: Parameters = None) -> str:
    """What moves, for people.

    >>> moved_text(nn.Linear(2, 1)), moved_text(nn.Linear(2, 1), "bias")
    ('all 3 weights', '1 of 3 weights: bias')
    """
    moving = moving_parameters(model, parameters)
    total = sum(parameter.numel() for parameter in model.parameters())
    count = sum(parameter.numel() for parameter in moving.values())
    if count == total:
        return f"all {total} weights"
    given = [parameters] if isinstance(parameters, str) else parameters or [plain_name(name) for name in moving]
    shown = ", ".join(given[:6]) + (f" and {len(given) - 6} more" if len(given) > 6 else "")
    return f"{count} of {total} weights: {shown}"
