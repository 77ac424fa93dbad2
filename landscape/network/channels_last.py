"""The order in which the images of a network lie in memory.

In channels-last order convolution and pooling are fastest. Networks are written for the other order, in which the
pixels of a channel lie together: there ``images.view(samples, -1)`` needs no copy, and torch refuses it where it would
need one. A network that does this gets its copy; what that does not help keeps the order it was written for.
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
    """The method of a tensor that does the same as one that only views, with a copy where there is no other way.

    >>> copying_method("view", [2, -1], {}), copying_method("view", [torch.int32], {}), copying_method("relu", [], {})
    ('reshape', None, None)
    """
    by_place = not options and not any(isinstance(argument, torch.dtype) for argument in arguments)
    return _COPYING_METHODS.get(name) if by_place else None


def to_channels_last(flat: FlatNetwork, x: Tensor) -> bool:
    """Whether the network takes inputs like ``x``, channels-last as far as it has images, with weights in that order.

    Where it must, its ``view`` learns to copy. This is right unless the network writes into such a view and means what
    is behind it, so the output is compared. Where it is not right the weights are put into plain order.
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
    """A forward pass in which views copy where they must."""

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
    """What the network makes of a copy of the input; None if it may not view it as it wants to."""
    try:
        return network(x.clone())
    except RuntimeError as error:
        if _VIEW_ERROR in str(error):
            return None
        raise


def _equal_up_to_rounding(found: object, expected: object) -> bool:
    """Whether two outputs are equal but for rounding, which differs from one order in memory to the other."""
    if not isinstance(found, Tensor) or not isinstance(expected, Tensor) or found.shape != expected.shape:
        return False
    scale = float(expected.abs().nan_to_num(posinf=0.0).amax()) if expected.numel() else 0.0
    return torch.allclose(found, expected, rtol=1e-3, atol=1e-3 * scale, equal_nan=True)
