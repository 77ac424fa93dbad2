"""Run networks in channels-last memory order, in which convolution and pooling are fastest.

Networks are usually written for contiguous order, in which ``images.view(samples, -1)`` needs no copy; in channels-last
order torch raises an error for it. Such views are replaced by copies; networks that still fail keep contiguous order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from valleyscope.landscape.network.flat_parameters import FlatNetwork

_VIEW_ERROR = "view size is not compatible"
_COPYING_METHODS = {"view": "reshape", "view_as": "reshape_as"}


def copying_method(name: str, arguments: Iterable[object], options: Mapping[str, object]) -> str | None:
    """The tensor method that does the same as a view, with a copy if necessary; None for other methods.

    >>> copying_method("view", [2, -1], {}), copying_method("view", [torch.int32], {}), copying_method("relu", [], {})
    ('reshape', None, None)
    """
    by_place = not options and not any(isinstance(argument, torch.dtype) for argument in arguments)
    return _COPYING_METHODS.get(name) if by_place else None


def to_channels_last(flat: FlatNetwork, x: Tensor) -> bool:
    """Put the network into channels-last order if it runs on inputs like ``x`` in that order; returns whether it does.

    If necessary its views become copies. That is wrong if the network writes into such a view, so the output is
    compared. If it differs, the weights go back to contiguous order.
    """
    network = flat.network
    if _output(network, x) is not None:
        return True
    flat.bind_parameters(channels_last=False)
    expected = _output(network, x.clone(memory_format=torch.contiguous_format))
    if expected is not None and not isinstance(network, torch.jit.ScriptModule):
        flat.bind_parameters(channels_last=True)
        plain = network.forward
        network.forward = _CopyingForward(plain)
        if _equal_up_to_rounding(_output(network, x), expected):
            return True
        network.forward = plain
        flat.bind_parameters(channels_last=False)
    return False


class _CopyingForward:
    """A forward pass in which views copy if necessary."""

    def __init__(self, forward: Callable[..., Any]) -> None:
        self._forward = forward

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        with _CopyingViews():
            return self._forward(*arguments, **options)


class _CopyingViews(TorchFunctionMode):
    def __torch_function__(
        self, function: Callable[..., Any], _: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(function, "__name__", "")
        if function is getattr(Tensor, name, None) and (other := copying_method(name, args, kwargs or {})):
            function = getattr(Tensor, other)
        return function(*args, **(kwargs or {}))


@torch.no_grad()
def _output(network: nn.Module, x: Tensor) -> Any:
    """The output for a copy of the input; None if a view fails in this memory order."""
    try:
        return network(x.clone())
    except RuntimeError as error:
        if _VIEW_ERROR in str(error):
            return None
        raise


def _equal_up_to_rounding(found: object, expected: object) -> bool:
    if not isinstance(found, Tensor) or not isinstance(expected, Tensor) or found.shape != expected.shape:
        return False
    scale = float(expected.abs().nan_to_num(posinf=0.0).amax()) if expected.numel() else 0.0
    return torch.allclose(found, expected, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)
