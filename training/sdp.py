"""The exact step of structured directional pruning (the paper's Theorem 1) for given direction factors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from valleyscope.training.parameter_groups import group_dims, group_norms


def sdp_step(group: Mapping[str, Any], strength: float, factors: Tensor | Sequence[float]) -> list[Tensor]:
    """Minimise ½||w* - w||² + λ Σ s_i ||w_i|| over one layer of a partition.

    The closed form, for any real s_i, is w_i = (1 - λ s_i / ||w*_i||)_+ w*_i: groups with s_i > 0 shrink, or vanish
    where λ s_i ≥ ||w*_i||; groups with s_i < 0 grow. A group that is zero stays zero.

    Returns new tensors in the order of `group["params"]`; the network is left alone.

    >>> layer = torch.nn.Linear(2, 1, bias=False); _ = layer.weight.data.copy_(torch.tensor([[3.0, 4.0]]))
    >>> sdp_step({"params": [layer.weight], "structure": "filter"}, strength=1.0, factors=[2.5])[0]
    tensor([[1.5000, 2.0000]])
    """
    norms = group_norms(group)
    s = torch.as_tensor(factors, dtype=norms.dtype, device=norms.device).flatten()
    if s.numel() != norms.numel():
        raise ValueError(f"factors has {s.numel()} entries for {norms.numel()} groups: give one direction factor each")
    if not (strength >= 0 and torch.isfinite(torch.tensor(strength)) and torch.isfinite(s).all()):
        raise ValueError(f"strength={strength} must be finite and not negative, and every direction factor finite")
    scale = torch.where(norms > 0, (1 - strength * s / norms.clamp_min(torch.finfo(norms.dtype).tiny)).clamp_min(0), 0)
    weight = group["params"][0].detach()
    inside = group_dims(weight, group["structure"])
    outside = [size for dim, size in enumerate(weight.shape) if dim not in inside]
    shaped = scale.view(*outside, *(1 for _ in inside))
    return [weight * shaped] + [companion.detach() * scale for companion in group["params"][1:]]
