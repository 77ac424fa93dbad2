"""The groups of a partition as numbers on the flat vector of weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.landscape.geometry.parameter_choice import Parameters, moving_parameters

Partition = Sequence[Mapping[str, Any]]
"""What ``partition(model)`` returns: parameter groups with ``params``, ``name`` and ``structure``, one per layer."""

_FIRST_INNER = {"filter": 1, "kernel": 2, "vector": -1, "element": None}


@dataclass(frozen=True, eq=False)
class WeightGroups:
    """The number of the group of every weight, -1 for weights in no group, and the layer of every group.

    Groups are numbered layer by layer in the order of the partition, and inside a layer as in its weight tensor.
    """

    index: Tensor
    layers: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.layers)

    def sums(self, vector: Tensor) -> Tensor:
        """The sum of the entries of a flat vector over every group, in float64."""
        total = torch.zeros(self.count + 1, dtype=torch.float64, device=vector.device)
        return total.index_add_(0, self.index + 1, vector.to(torch.float64))[1:]

    def norms(self, vector: Tensor) -> Tensor:
        """The norm of every group, in float64."""
        return self.sums(vector.to(torch.float64) ** 2).sqrt()

    def spread(self, values: Tensor) -> Tensor:
        """A flat vector with the value of its group at every weight, and 0 at weights in no group."""
        padded = torch.cat([values.new_zeros(1), values])
        return padded[self.index + 1]

    def normalised(self, vector: Tensor) -> Tensor:
        """E_G(w): every group divided by its norm; zero groups, and weights in no group, are 0."""
        norms = self.norms(vector)
        scale = torch.where(norms > 0, 1 / norms.clamp_min(torch.finfo(torch.float64).tiny), 0.0)
        return vector.to(torch.float64) * self.spread(scale)


def weight_groups(model: nn.Module, groups: Partition, parameters: Parameters = None) -> WeightGroups:
    """The groups of a partition of this model, on its weights that move; with ``structure`` None a layer has none."""
    offsets: dict[int, int] = {}
    offset = 0
    for parameter in moving_parameters(model, parameters).values():
        offsets[id(parameter)] = offset
        offset += parameter.numel()
    index = torch.full((offset,), -1, dtype=torch.int64)
    layers: list[str] = []
    for number, group in enumerate(groups):
        if not isinstance(group, Mapping) or "params" not in group:
            raise ValueError(f"groups[{number}] is not a parameter group; pass what partition(model) returns")
        if group.get("structure") is None:
            continue
        name = str(group.get("name", number))
        weight, *companions = group["params"]
        numbers = _numbers(weight, group["structure"], name) + len(layers)
        count = int(numbers.max()) + 1 - len(layers)
        for parameter in (weight, *companions):
            if id(parameter) not in offsets:
                frozen = any(parameter is own for own in model.parameters())
                raise ValueError(
                    f"groups: layer {name!r} has a parameter that does not move; leave the layer out of the groups"
                    if frozen
                    else f"groups: layer {name!r} has a parameter that is not in this {type(model).__name__}; "
                    "call partition(model) with the same model"
                )
            place = slice(offsets[id(parameter)], offsets[id(parameter)] + parameter.numel())
            if parameter is weight:
                index[place] = numbers.reshape(-1)
            else:
                index[place] = torch.arange(len(layers), len(layers) + parameter.numel())
        layers += [name] * count
    if not layers:
        raise ValueError("groups has no layer with groups of weights; pass what partition(model) returns")
    return WeightGroups(index.to(next(model.parameters()).device), tuple(layers))


def _numbers(weight: Tensor, structure: str, name: str) -> Tensor:
    """The number of the group of every entry of a weight tensor."""
    if structure not in _FIRST_INNER:
        raise ValueError(
            f"groups: layer {name!r} has structure {structure!r}; use one of {', '.join(map(repr, _FIRST_INNER))}"
        )
    first = _FIRST_INNER[structure]
    outer = weight.dim() if first is None else max(1, weight.dim() - 1 if first == -1 else first)
    shape = weight.shape[:outer]
    numbers = torch.arange(shape.numel()).view(*shape, *([1] * (weight.dim() - outer)))
    return numbers.expand(weight.shape)
