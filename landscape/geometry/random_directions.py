"""Filter-normalised random directions in weight space (Li et al. 2018), comparable between networks.

Rescaling the filters of a rectifier network changes its weights but not its function, so a plain random direction
measures the scale of the weights. Here every filter of the direction has the norm of that filter of the weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from valleyscope.landscape.geometry.parameter_choice import Parameters
from valleyscope.landscape.geometry.vectors import views


def filter_normalised(
    model: nn.Module,
    weights: Tensor,
    generator: torch.Generator,
    *,
    biases: bool = False,
    parameters: Parameters = None,
) -> Tensor:
    """One Gaussian direction d, scaled filter by filter: ``d_f <- d_f |w_f| / |d_f|``.

    A filter is one output index of a parameter of two or more dimensions. A filter that is exactly zero (pruned) stays
    zero in the direction. Parameters of one dimension (biases, BatchNorm) are zero as in Li et al., or with
    ``biases`` get the norm of the whole tensor. Random numbers come from the CPU: a seed gives the same on all devices.
    """
    direction = torch.randn(weights.numel(), dtype=torch.float64, generator=generator).to(weights.device)
    drawn = views(model, direction, parameters)
    for name, weight in views(model, weights, parameters).items():
        if weight.dim() > 1:
            rows, norms = drawn[name].flatten(1), weight.to(torch.float64).flatten(1).norm(dim=1)
        elif biases:
            rows, norms = drawn[name].reshape(1, -1), weight.to(torch.float64).reshape(1, -1).norm(dim=1)
        else:
            drawn[name].zero_()
            continue
        rows.mul_((norms / rows.norm(dim=1).clamp_min(torch.finfo(torch.float64).tiny))[:, None])
    if not bool(direction.any()):
        raise ValueError(
            f"no filter of {type(model).__name__} has a weight other than zero, so there is no filter-normalised "
            "direction; use biases=True to include biases and BatchNorm parameters"
        )
    return direction
