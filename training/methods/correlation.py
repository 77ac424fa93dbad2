"""COP: filters go first that another filter of the layer can stand for, and that cost more (after Wang et al. 2019).

    I_i = 1 - max over larger filters j of the layer of |corr(w_i, w_j)|,  divided by the layer's largest I
    score_i = I_i + cost_weight (1 - log m / log of the largest m),  m the multiply-adds of the layer for one filter

Of two filters that are alike only the smaller one goes: the largest filter of a layer has I = 1. The division makes
layers comparable, the cost term prefers filters that save more.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from valleyscope.training.methods.method import Method
from valleyscope.training.methods.selection import select


class CorrelationPruning(Method):
    """cop."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        weight = self.context.settings.option("cost_weight")
        costs = {name: layer.all_multiply_adds for name, layer in self.context.operations.layers().items()}
        single = {layer["name"]: costs[layer["name"]] / len(layer["params"][0]) for layer in self.context.layers}
        largest = math.log(max(2.0, *single.values()))
        scores = {}
        for layer in self.context.layers:
            name = layer["name"]
            importance = independence(layer["params"][0].detach().flatten(1))
            cost_term = 1 - math.log(max(1.0, single[name])) / largest
            scores[name] = importance / importance.max() + weight * cost_term
        return select(self.context, scores)


def independence(filters: Tensor) -> Tensor:
    """1 - the largest |correlation| of each filter (a row) with a larger one of the layer."""
    rows = filters.double()
    norms = rows.norm(dim=1)
    centred = rows - rows.mean(1, keepdim=True)
    unit = centred / centred.norm(dim=1, keepdim=True).clamp_min(1e-30)
    correlation = (unit @ unit.T).abs()
    position = torch.empty_like(norms)
    position[norms.argsort(stable=True)] = torch.arange(len(norms), dtype=norms.dtype, device=norms.device)
    larger = position[None, :] > position[:, None]
    found = 1 - torch.where(larger, correlation, 0).amax(1)
    return found.masked_fill(norms == 0, 0.0)
