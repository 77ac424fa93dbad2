"""Copies of networks, also of those that store results of their last forward pass."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import torch
from torch import Tensor, nn

Network = TypeVar("Network", bound=nn.Module)


def copied(model: Network, shared: Iterable[nn.Parameter] = ()) -> Network:
    """A copy that shares no tensor with the model, except the memory of the ``shared`` parameters, frozen in the copy.

    torch cannot copy tensors with a gradient history. Networks hold such tensors when they store activations, or when a
    weight is computed from parameters before every pass (pruning masks, weight norm). The copy gets their values; the
    next pass recomputes them.
    """
    held = (value for module in model.modules() for value in _tensors(vars(module), set()))
    # With gradients, the parameters of a copied TorchScript module would get a history.
    with torch.no_grad():
        known: dict[int, Tensor] = {id(value): value.detach().clone() for value in held if not value.is_leaf}
        known |= {id(value): nn.Parameter(value.detach(), requires_grad=False) for value in shared}
        return copy.deepcopy(model, known)


def _tensors(value: object, seen: set[int]) -> Iterator[Tensor]:
    """The tensors in nested containers, which may contain themselves."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping | list | tuple | set) and id(value) not in seen:
        seen.add(id(value))
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(inner, seen)
