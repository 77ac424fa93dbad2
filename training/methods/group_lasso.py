"""Group lasso, min L(w) + λ Σ ||w_i||: by proximal SGD, and by regularised dual averaging.

    group-lasso:      w_i = S(w_i - γ d_i, γλ)                      (proximal SGD)
    group-lasso-rda:  v -= γ d;  T += γλ;  w_i = S(v_i, T)          (Xiao 2010, Yang et al. 2010)

with S(u, τ) = (1 - τ/||u||)_+ u and γ = lr/(1 - momentum), so that the fixed points are those of the penalised loss.
Dual averaging starts at v = 0 in the literature, where a network with ReLU has no gradient: here v = w at the random
start. With a wish λ is chosen so that it should be fulfilled after `PRUNING_PART` of the run, the penalty ends there as
AltSDP's threshold does, and what is still missing half-way through the run is cut by norm.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from valleyscope.training.altsdp import AltSDP
from valleyscope.training.methods.altsdp import Thresholding, median_norm
from valleyscope.training.thresholds import PRUNING_PART, bearable, effective_rate

# A constant penalty acts fully from the first step, before the network has learned: less than AltSDP's, which grows.
_CAUTION = 0.4


class GroupLasso(AltSDP):
    """Proximal SGD for the group lasso (`prox`), or regularised dual averaging (`dual`), with strength `penalty`."""

    def __init__(self, params: Any, lr: float, penalty: float, mode: Literal["prox", "dual"], **rest: Any) -> None:
        super().__init__(params, lr=lr, c=penalty, mode=mode, **rest)

    def _increment(self, group: dict[str, Any], rate: float) -> float:
        return float(rate * group["c"])


class GroupLassoMethod(Thresholding):
    """Both forms of the group lasso."""

    mode: Literal["prox", "dual"] = "prox"

    def _build(self) -> AltSDP:
        return GroupLasso(self.context.groups, penalty=self._penalty(), mode=self.mode, **self._shared_options())

    def _penalty(self) -> float:
        """λ as given; with a wish alone the λ whose accumulated threshold should fulfil it in time."""
        settings = self.context.settings
        share = settings.expected_share
        if settings.penalty is not None or share is None:
            return float(settings.option("penalty"))
        rates = settings.rates(self.context.steps)
        first = rates[: max(1, int(PRUNING_PART * len(rates)))]
        needed = (1 + share) if self.mode == "dual" else 1 / (1 - share)
        reach = bearable(_CAUTION * median_norm(self.context) * needed, first, settings.momentum)
        return reach / effective_rate(float(np.sum(first)), settings.momentum)


class GroupLassoRDAMethod(GroupLassoMethod):
    mode: Literal["prox", "dual"] = "dual"
