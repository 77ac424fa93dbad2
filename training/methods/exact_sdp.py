"""Exact structured directional pruning of a trained network (the paper's Theorem 1), as a cut.

    w_i = (1 - λ s_i / ||w_i||)_+ w_i,  s_i = <E(w_i), Pi_i(E_G(w))>

Groups with λ s_i ≥ ||w_i|| vanish, the others shrink, and those with s_i < 0 grow. The direction factors s_i come from
the Hessian, which this room does not know: who calls `train` passes a function. With factors `ones` all s_i are 1,
which is plain group soft-thresholding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from valleyscope.training.methods.method import Method, multiply_groups
from valleyscope.training.methods.selection import select
from valleyscope.training.parameter_groups import group_norms

_ROUNDING = 1 + 1e-6
"""So that rounding does not leave the last group a trace above zero."""


class ExactSDP(Method):
    """SGD, unless the network is trained already, and one exact step."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        factors = self._factors()
        norms = {layer["name"]: group_norms(layer).double() for layer in self.context.layers}
        # λ at which a group vanishes; never where it would grow.
        ends = {
            name: torch.where(factors[name] > 0, norms[name] / factors[name].clamp_min(1e-300), torch.inf)
            for name in norms
        }
        for name, own in norms.items():
            ends[name][own == 0] = 0.0
        strength, removed = self._strength(ends)
        self._scales = {
            name: torch.where(
                removed[name] | (ends[name] > strength),
                (1 - strength * factors[name] / own.clamp_min(1e-300)).clamp_min(0.0),
                1.0,  # kept because of the floor, or as the last group of its layer
            )
            for name, own in norms.items()
        }
        values = torch.cat(list(factors.values()))
        self.facts["strength"] = strength
        self.facts["direction_factors"] = {
            "source": self.context.settings.option("factors"),
            "smallest": float(values.min()),
            "median": float(values.median()),
            "largest": float(values.max()),
        }
        return removed

    def after_cut(self, original: nn.Module) -> None:
        del original  # the groups that are left have their weights still
        for layer in self.context.layers:
            multiply_groups(layer, self._scales[layer["name"]])

    def _factors(self) -> dict[str, Tensor]:
        """s_i of each layer."""
        context = self.context
        sizes = [group_norms(layer).numel() for layer in context.layers]
        device = context.layers[0]["params"][0].device
        if context.settings.option("factors") == "ones":
            found = torch.ones(sum(sizes), dtype=torch.float64)
        else:
            assert context.direction_factors is not None  # checked before the run
            found = context.direction_factors(context.model, context.groups, context.settings)
            found = found.detach().double().flatten()
        if found.numel() != sum(sizes):
            raise ValueError(f"direction_factors gave {found.numel()} numbers for {sum(sizes)} groups: one each")
        parts = torch.split(found.to(device), sizes)
        return {layer["name"]: part for layer, part in zip(context.layers, parts, strict=True)}

    def _strength(self, ends: dict[str, Tensor]) -> tuple[float, dict[str, Tensor]]:
        """λ as given, or the smallest that fulfils the wish; and the groups that vanish."""
        settings = self.context.settings
        if settings.strength is not None:
            return settings.strength, {name: end <= settings.strength for name, end in ends.items()}
        removed = select(self.context, ends)
        self._check_wish(removed, ends)
        gone = torch.cat([ends[name][removed[name]] for name in ends])
        return float(gone.max()) * _ROUNDING if gone.numel() else 0.0, removed

    def _check_wish(self, removed: dict[str, Tensor], ends: dict[str, Tensor]) -> None:
        settings = self.context.settings
        total = sum(len(end) for end in ends.values())
        share = sum(int(part.sum()) for part in removed.values()) / total
        if settings.sparsity is not None and share < settings.sparsity - 0.5 / total - 1e-9:
            raise ValueError(
                f"sparsity={settings.sparsity} cannot be reached: only {share:.3f} of the groups have a positive "
                "direction factor or are zero, the others never vanish; ask for less"
            )
        if settings.macs is not None and (left := self.context.operations.share(removed)) > settings.macs:
            raise ValueError(
                f"macs={settings.macs} cannot be reached: {left:.3f} are left when all groups with a positive "
                "direction factor are zero; ask for more"
            )
