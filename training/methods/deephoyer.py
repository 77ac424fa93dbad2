"""DeepHoyer: the group form of the Hoyer-square regulariser (Yang, Wen and Li 2020).

    R = α Σ_layers [ (Σ_f ||w_f||)²/||w||² + (Σ_c ||w_c||)²/||w||² ]

over the filters f and the input channels c of each prunable layer. It does not depend on the scale of a layer. After
training, groups are cut by norm: at the wish, or, without one, those below a threshold of 1e-4.
"""

from __future__ import annotations

import torch
from torch import Tensor

from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import norm_scores
from valleyscope.training.methods.selection import select, select_below

_THRESHOLD = 1e-4


class DeepHoyer(Method):
    """The penalty, and one cut."""

    @torch.no_grad()
    def before_step(self) -> None:
        strength = self.context.settings.option("penalty")
        for layer in self.context.layers:
            weight = layer["params"][0]
            weight.grad.add_(hoyer_gradient(weight), alpha=strength)

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        settings = self.context.settings
        scores = norm_scores(self.context)
        if settings.wish is not None:
            return select(self.context, scores, by_layer=settings.option("scope") == "layer")
        return select_below(self.context, scores, _THRESHOLD)


def hoyer_gradient(weight: Tensor) -> Tensor:
    """The gradient of (Σ ||w_f||)²/||w||² + (Σ ||w_c||)²/||w||² with f over the first, c over the second dimension.

    With N = Σ ||w_f|| and Q = ||w||² the first term has the gradient 2 N/Q w_f/||w_f|| - 2 N²/Q² w_f.
    """
    w = weight.detach()
    square = w.square().sum().clamp_min(torch.finfo(w.dtype).tiny)
    total = torch.zeros_like(w)
    for dim in (0, 1):
        others = [other for other in range(w.dim()) if other != dim]
        norms = torch.linalg.vector_norm(w, dim=others, keepdim=True)
        sum_of_norms = norms.sum()
        directions = torch.where(norms > 0, w / norms.clamp_min(torch.finfo(w.dtype).tiny), 0)
        total += 2 * sum_of_norms / square * directions - 2 * (sum_of_norms / square).square() * w
    return total
