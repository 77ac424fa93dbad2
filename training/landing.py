"""An exact end at the wished share: what the last step made zero beyond it goes back to its values before that step.

In short runs, and where all norms of a layer are alike, one step can take many groups at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from valleyscope.training.parameter_groups import ParameterGroup, broadcast_masks, group_norms
from valleyscope.training.zero_groups import thresholded_layers


class LastValues:
    """The thresholded weights as they were before a step."""

    def __init__(self, groups: Sequence[ParameterGroup]) -> None:
        self.layers = [layer for group in groups for layer in thresholded_layers(group)]
        self._now = [parameter.detach() for layer in self.layers for parameter in layer["params"]]
        self._before = [torch.empty_like(parameter) for parameter in self._now]

    def remember(self) -> None:
        """Copy the weights; a pass over memory, little beside a training step."""
        if self._now:
            torch._foreach_copy_(self._before, self._now)

    def removed_last(self) -> list[Tensor]:
        """The norm before the step of each group that the step made zero, by layer; NaN for all other groups."""
        found, values = [], iter(self._before)
        for layer in self.layers:
            before = group_norms({**layer, "params": [next(values) for _ in layer["params"]]})
            now = group_norms(layer)
            found.append(torch.where((now == 0) & (before > 0), before.double(), math.nan))
        return found

    @torch.no_grad()
    def restore(self, chosen: Sequence[Tensor]) -> None:
        """Give the chosen groups of each layer their values back."""
        values = iter(self._before)
        for layer, mask in zip(self.layers, chosen, strict=True):
            for parameter, own in broadcast_masks(layer, mask):
                parameter.copy_(torch.where(own, next(values), parameter))

    def keep_fewest(self, enough: Callable[[], bool]) -> None:
        """Of the groups that the step made zero keep as few as are `enough`, those that were smallest."""
        norms = self.removed_last()
        together = torch.cat(norms)
        order = torch.where(together.isnan(), math.inf, together).argsort(stable=True)
        sizes = [len(values) for values in norms]
        candidates = int((~together.isnan()).sum())

        def apply(kept: int) -> None:
            """Leave `kept` of the candidates at zero; all others have their values back."""
            back = torch.zeros(len(together), dtype=torch.bool, device=together.device)
            back[order[kept:candidates]] = True
            self.restore(torch.split(back, sizes))

        low, high = 0, candidates  # `high` is enough: that is why the threshold ends
        zeros = [parameter.clone() for parameter in self._now]
        while low < high:
            middle = (low + high) // 2
            torch._foreach_copy_(self._now, zeros)
            apply(middle)
            low, high = (low, middle) if enough() else (middle + 1, high)
        torch._foreach_copy_(self._now, zeros)
        apply(high)
