"""Soft filter pruning: after each epoch filters of each layer become zero, and may grow again.

    sfp   the filters of smallest norm                                        (He et al. 2018)
    fpgm  the filters nearest to the others, score_i = Σ_j ||w_i - w_j||      (He et al. 2019: geometric median)

The same share of each layer: distances of filters of different layers cannot be compared. Where BatchNorm follows, a
filter that is zero and grows again is at once normalised to full size, and the network collapses. So there γ becomes
zero, the filter keeps its weights, and grows again with γ; norms and distances are those of |γ_i| w_i. The shift (bias
or β) stays: ReLU passes no gradient at exactly zero, from which nothing would grow. After the last epoch the filters
with all that belongs to them are cut.
"""

from __future__ import annotations

import torch
from torch import Tensor

from valleyscope.training.batch_norm import reestimate_statistics
from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import Scores, effective_filters
from valleyscope.training.methods.selection import select


class SoftFilterPruning(Method):
    """sfp."""

    def scores(self) -> Scores:
        context = self.context
        return {layer["name"]: effective_filters(context, layer).norm(dim=1) for layer in context.layers}

    @torch.no_grad()
    def after_epoch(self, epoch: int) -> None:  # noqa: ARG002
        removed = select(self.context, self.scores(), by_layer=True)
        for layer in self.context.layers:
            norm = self.context.norm_parameters.get(layer["name"])
            gone = removed[layer["name"]]
            factor = layer["params"][0] if norm is None else norm[0]
            factor[gone] = 0.0
        reestimate_statistics(self.context.model, self.context.data.x_train)

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        return select(self.context, self.scores(), by_layer=True)


class GeometricMedian(SoftFilterPruning):
    """fpgm."""

    def scores(self) -> Scores:
        found = {}
        for layer in self.context.layers:
            filters = effective_filters(self.context, layer)
            found[layer["name"]] = torch.cdist(filters, filters).sum(1)
        return found
