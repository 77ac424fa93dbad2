"""HESSO, the hybrid sparse optimiser of OTO (Chen et al. 2024): groups fade out in periods.

After a warm-up, P periods of T steps: at the start of each the next K/P groups of lowest saliency are chosen, and after
each step t = 0 ... T-1 of the period w_i *= (T-t-1)/(T-t), so that they go to zero linearly and are exactly zero at its
end, from where on they are fixed. Saliency is the norm, γ or Taylor (`score`). The periods fill the part of the run
from `_WARM_UP` to `_END`; the rest is for SGD to recover in.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from valleyscope.training.methods.method import Method, RunContext, scale_groups, set_to_zero
from valleyscope.training.methods.scores import scores
from valleyscope.training.methods.selection import select
from valleyscope.training.zero_groups import ZeroGroups

_WARM_UP = 0.1
_END = 0.5


class Hesso(Method):
    """Periods of fading; `fading` and `gone` mark the groups of each layer."""

    def __init__(self, context: RunContext) -> None:
        super().__init__(context)
        self.fading: dict[str, Tensor] = {}
        self.gone: dict[str, Tensor] = {}
        self._zero: ZeroGroups | None = None
        start = context.first_step + int(_WARM_UP * context.main_steps)
        available = max(1, int((_END - _WARM_UP) * context.main_steps))
        self.periods = min(context.settings.option("periods"), available)
        self.length = available // self.periods
        self.first = start

    def optimizer(self) -> Optimizer:
        self._optimizer = super().optimizer()
        return self._optimizer

    def before_step(self) -> None:
        if self.gone:
            if self._zero is None:
                self._zero = ZeroGroups(self.context.layers)
            self._zero.clear([parameter.grad for parameter in self._zero.parameters])

    def after_step(self, step: int) -> None:
        period, t = divmod(step - 1 - self.first, self.length)
        if not 0 <= period < self.periods:
            return
        if t == 0:
            self._choose((period + 1) / self.periods)
        for layer in self.context.layers:
            scale_groups(layer, self.fading[layer["name"]], (self.length - t - 1) / (self.length - t))
        if t == self.length - 1:
            self._fix()

    def _choose(self, part: float) -> None:
        """The groups that fade out next: with those that are gone, `part` of the way to the wish."""
        found = scores(self.context, self.context.settings.option("score"))
        for name, gone in self.gone.items():
            found[name] = found[name].masked_fill(gone, -torch.inf)
        chosen = select(self.context, found, part=part)
        self.fading = {name: mask & ~self.gone[name] if self.gone else mask for name, mask in chosen.items()}

    @torch.no_grad()
    def _fix(self) -> None:
        for layer in self.context.layers:
            name = layer["name"]
            self.gone[name] = self.fading[name] | self.gone[name] if name in self.gone else self.fading[name]
            set_to_zero(layer, self.gone[name])
        self._zero = ZeroGroups(self.context.layers)
        self._zero.clear(
            [self._optimizer.state[parameter].get("momentum_buffer") for parameter in self._zero.parameters]
        )

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"fading": self.fading, "gone": self.gone}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        device = self.context.layers[0]["params"][0].device
        self.fading, self.gone = ({k: v.to(device) for k, v in state[key].items()} for key in ("fading", "gone"))
        self._zero = None
