"""The exact step of structured directional pruning (the paper's Theorem 1) for given direction factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.training.parameter_groups import ParameterGroup, group_dims, group_norms, prunable


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


def sdp(
    model: nn.Module,
    weights: Mapping[str, Any] | nn.Module | Tensor,
    groups: Sequence[ParameterGroup],
    factors: Tensor | Sequence[float] | None = None,
    *,
    strength: float | None = None,
    sparsity: float | None = None,
) -> dict[str, Any]:
    """Exact structured directional pruning of a whole network: a state dict with w_i = (1 - λ s_i / ||w*_i||)_+ w*_i.

    `weights` is a state dict, module or flat vector, `groups` a partition of `model`, and `factors` one s_i per group
    in its order (`direction_factors`); without factors all s_i are 1, which is plain group soft-thresholding. Give λ as
    `strength`, or the share of zero groups as `sparsity`: λ is then the smallest with at least that share. Groups with
    s_i < 0 grow. The rest of the partition, and buffers, are left alone.
    """
    if (strength is None) == (sparsity is None):
        raise ValueError(f"strength={strength} and sparsity={sparsity}: give one of them")
    state = _state_of(model, weights)
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    layers = [_with_values(group, state, names) for group in prunable(groups)]
    norms = [group_norms(layer).to(torch.float64) for layer in layers]
    count = sum(part.numel() for part in norms)
    if factors is None:
        s = torch.ones(count, dtype=torch.float64)
    else:
        s = torch.as_tensor(factors, dtype=torch.float64).detach().cpu().flatten()
    if s.numel() != count:
        raise ValueError(f"factors has {s.numel()} entries for {count} groups: give one direction factor each")
    if strength is None:
        assert sparsity is not None
        strength = strength_for_sparsity(torch.cat(norms).cpu(), s, sparsity)
    for layer, own in zip(layers, torch.split(s, [part.numel() for part in norms]), strict=True):
        for name, value in zip(layer["names"], sdp_step(layer, strength, own), strict=True):
            state[name] = value
    for name, parameter in model.named_parameters(remove_duplicate=False):
        state[name] = state[names[id(parameter)]]  # names that share a parameter get the same tensor
    return state


def strength_for_sparsity(norms: Tensor, factors: Tensor, sparsity: float) -> float:
    """The smallest λ at which at least this share of the groups is zero.

    >>> round(strength_for_sparsity(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1.0, 0.5, 1.0, -1.0]), 0.5), 3)
    3.0
    """
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparsity={sparsity} must be a share of the groups, from 0 to 1")
    wanted = math.ceil(sparsity * norms.numel() - 1e-9)
    if wanted == 0:
        return 0.0
    tiny = torch.finfo(torch.float64).tiny
    vanish_at = torch.where(factors > 0, norms.double() / factors.double().clamp_min(tiny), torch.inf)
    vanish_at = torch.where(norms == 0, 0.0, vanish_at).sort().values
    last = float(vanish_at[wanted - 1])
    if not math.isfinite(last):
        reached = int(torch.isfinite(vanish_at).sum())
        raise ValueError(
            f"sparsity={sparsity} cannot be reached: only {reached} of {norms.numel()} groups have a positive "
            f"direction factor or are zero, the others never vanish; ask for {reached / norms.numel():.3f} or less"
        )
    # A little more, so that rounding in the network's data type does not leave the last group a trace above zero.
    return last * (1 + 1e-6)


def _state_of(model: nn.Module, weights: Mapping[str, Any] | nn.Module | Tensor) -> dict[str, Any]:
    if isinstance(weights, nn.Module):
        weights = weights.state_dict()
    state = {name: _copy(value) for name, value in model.state_dict().items()}
    if isinstance(weights, Mapping):
        missing = [name for name, _ in model.named_parameters() if name not in weights]
        if missing:
            raise ValueError(f"weights has no parameter {missing[0]!r} of {type(model).__name__}")
        return state | {name: _copy(weights[name]) for name in state if name in weights}
    size = sum(parameter.numel() for parameter in model.parameters())
    if weights.shape != (size,):
        raise ValueError(f"weights has shape {tuple(weights.shape)}; expected a flat vector of shape ({size},)")
    parts = torch.split(weights.detach(), [parameter.numel() for parameter in model.parameters()])
    for (name, parameter), part in zip(model.named_parameters(), parts, strict=True):
        state[name] = part.reshape(parameter.shape).to(parameter, copy=True)
    return state


def _copy(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, Tensor) else value


def _with_values(group: ParameterGroup, state: Mapping[str, Any], names: Mapping[int, str]) -> ParameterGroup:
    """The layer with the values of a state dict in place of the model's parameters."""
    if any(id(parameter) not in names for parameter in group["params"]):
        raise ValueError(
            f"groups: layer {group['name']!r} has a parameter that is not in this model; "
            "call partition(model) with the same model"
        )
    found = [names[id(parameter)] for parameter in group["params"]]
    return {**group, "params": [state[name] for name in found], "names": found}
