"""Penalties on the factors γ of BatchNorm: network slimming, and the polarization regulariser.

    ns  gradient of γ += s sign(γ); the smallest |γ| of the network are cut                       (Liu et al. 2017)
    pr  R = λ Σ (t |γ_i| - |γ_i - m|), m the mean of all γ; γ is kept in [0, 1];
        cut at the first valley of the histogram of γ, or at the wished share                   (Zhuang et al. 2020)

The scale of a layer's γ is undone by a BatchNorm that comes later, so factors of different layers are comparable only
in so far as the penalty acts on all alike: `scope: layer` cuts the same share of each layer instead.
"""

from __future__ import annotations

import torch
from torch import Tensor

from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import gamma_scores
from valleyscope.training.methods.selection import select, select_below

_BINS = 50


class Slimming(Method):
    """ns."""

    @property
    def factors(self) -> list[Tensor]:
        return [gamma for gamma, _ in self.context.norm_parameters.values()]

    @torch.no_grad()
    def before_step(self) -> None:
        strength = self.context.settings.option("penalty")
        for gamma in self.factors:
            assert gamma.grad is not None
            gamma.grad.add_(gamma.sign(), alpha=strength)

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        settings = self.context.settings
        return select(self.context, gamma_scores(self.context), by_layer=settings.option("scope") == "layer")


class Polarization(Slimming):
    """pr."""

    @torch.no_grad()
    def before_step(self) -> None:
        settings = self.context.settings
        gradients = polarization_gradient(self.factors, settings.option("polarization"))
        for gamma, gradient in zip(self.factors, gradients, strict=True):
            assert gamma.grad is not None
            gamma.grad.add_(gradient, alpha=settings.option("penalty"))

    @torch.no_grad()
    def after_step(self, step: int) -> None:  # noqa: ARG002
        for gamma in self.factors:
            gamma.clamp_(0.0, 1.0)

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        if self.context.settings.wish is not None:
            return super().removed_at_the_end()
        valley = first_valley(torch.cat([gamma.detach() for gamma in self.factors]))
        self.facts["valley"] = valley
        return select_below(self.context, gamma_scores(self.context), valley)


def polarization_gradient(factors: list[Tensor], t: float) -> list[Tensor]:
    """∂/∂γ_i of Σ_j (t |γ_j| - |γ_j - m|) with m = mean γ: t sign γ_i - sign(γ_i - m) + mean_j sign(γ_j - m)."""
    together = torch.cat([gamma.detach() for gamma in factors])
    side = (together - together.mean()).sign()
    gradient = t * together.sign() - side + side.mean()
    return list(torch.split(gradient, [len(gamma) for gamma in factors]))


def first_valley(factors: Tensor) -> float:
    """The middle of the first bin of a histogram on [0, 1] that is lower than the bin before, and not above the next.

    A run of equally low bins counts as one valley, and its middle is returned; 0 where there is none.
    """
    counts = torch.histc(factors.float().cpu(), bins=_BINS, min=0.0, max=1.0).tolist()
    for first in range(1, _BINS):
        if counts[first] >= counts[first - 1]:
            continue
        last = first
        while last + 1 < _BINS and counts[last + 1] == counts[first]:
            last += 1
        if last + 1 < _BINS and counts[last + 1] > counts[first]:
            return (first + last + 1) / 2 / _BINS
    return 0.0
