"""Sparsity: exact zeros of a network, of its groups and of each layer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from valleyscope.training.parameter_groups import (
    ParameterGroup,
    companion_rows,
    group_dims,
    group_norms,
    partition,
    prunable,
)


@dataclass(frozen=True)
class LayerSparsity:
    """Zeros of one prunable layer."""

    name: str
    groups: int
    zero_groups: int
    parameters: int
    zero_parameters: int


@dataclass(frozen=True)
class Sparsity:
    """Share of zero parameters of the whole network, share of zero groups, and the counts of each prunable layer.

    `float(report)` is the share of parameters that are exactly zero, as the paper's tables mean it.
    """

    parameters: float
    groups: float
    layers: tuple[LayerSparsity, ...]

    def __float__(self) -> float:
        return self.parameters


def sparsity(network: nn.Module | Sequence[ParameterGroup]) -> Sparsity:
    """Sparsity of a network (partitioned into filters) or of a partition.

    >>> layer = nn.Linear(2, 4); _ = layer.weight.data[:1].zero_(), layer.bias.data[:1].zero_()
    >>> sparsity(partition(layer, skip_output=False)).groups
    0.25
    """
    groups = partition(network) if isinstance(network, nn.Module) else network
    layers = tuple(_layer(group) for group in prunable(groups))
    everything = [parameter for group in groups for parameter in group["params"]]
    total = sum(parameter.numel() for parameter in everything)
    zeros = sum(parameter.numel() - int(torch.count_nonzero(parameter)) for parameter in everything)
    counted = sum(layer.groups for layer in layers)
    return Sparsity(
        parameters=zeros / total if total else 0.0,
        groups=sum(layer.zero_groups for layer in layers) / counted if counted else 0.0,
        layers=layers,
    )


class ZeroGroups:
    """The groups of an optimiser's parameter groups that are exactly zero, now."""

    def __init__(self, groups: Sequence[ParameterGroup]) -> None:
        self.parameters: list[Tensor] = []
        self._kept: list[Tensor] = []
        total = kept = 0
        for layer in (layer for group in groups for layer in thresholded_layers(group)):
            lead = layer["params"][0]
            dims = group_dims(lead, layer["structure"])
            shape = [1 if dim in dims else size for dim, size in enumerate(lead.shape)]
            alive = (group_norms(layer) > 0).view(shape)
            total += alive.numel()
            kept += int(torch.count_nonzero(alive))
            self.parameters += layer["params"]
            self._kept.append(alive)
            for parameter, rows in zip(layer["params"][1:], companion_rows(layer), strict=True):
                self._kept.append(alive[rows].view(-1, *(1,) * (parameter.dim() - 1)))
        self.share = 1 - kept / total if total else 0.0

    def clear(self, values: Sequence[Tensor | None]) -> None:
        """Set to zero what belongs to these groups, in tensors such as gradients, one for each of `parameters`."""
        for tensor, kept in zip(values, self._kept, strict=True):
            if tensor is not None:
                tensor.mul_(kept)


def thresholded_layers(group: ParameterGroup) -> Iterator[ParameterGroup]:
    """The layers of a parameter group; without a partition, its tensors of two or more dimensions by rows."""
    if group["structure"] == "rows":
        yield from ({"params": [p], "structure": "filter"} for p in group["params"] if p.dim() > 1)
    elif group["structure"] is not None:
        yield group


def angle(groups: Sequence[ParameterGroup]) -> float:
    """Angle in degrees between the prunable weights w and E_G(w), every group of which is normalised.

    cos = Σ ||w_i|| / (||w|| √k) with k non-zero groups: 0 where all kept groups have the same norm.
    """
    norms = [group_norms(group).double() for group in prunable(groups)]
    if not norms:
        return math.nan
    all_norms = torch.cat(norms)
    kept = int(torch.count_nonzero(all_norms))
    if kept == 0:
        return math.nan
    cosine = float(all_norms.sum() / (torch.linalg.vector_norm(all_norms) * math.sqrt(kept)))
    return math.degrees(math.acos(min(1.0, cosine)))


def _layer(group: ParameterGroup) -> LayerSparsity:
    norms = group_norms(group)
    parameters = sum(parameter.numel() for parameter in group["params"])
    nonzero = sum(int(torch.count_nonzero(parameter)) for parameter in group["params"])
    return LayerSparsity(
        name=group["name"],
        groups=norms.numel(),
        zero_groups=norms.numel() - int(torch.count_nonzero(norms)),
        parameters=parameters,
        zero_parameters=parameters - nonzero,
    )
