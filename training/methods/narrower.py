"""UCS: a uniformly narrower network, trained from scratch (the control of Liu et al. 2019, "rethinking").

A narrower network is the wide one with the last filters of each layer at zero, and kept there. Its initial weights are
those of the wide one, larger by √(inputs/inputs left), because initialisations shrink with the number of inputs. So it
lies in the same weight space as all other minima, and its curves and planes can be drawn.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from valleyscope.training.methods.method import Method, set_to_zero
from valleyscope.training.methods.selection import select
from valleyscope.training.zero_groups import ZeroGroups


class Narrower(Method):
    """Filters that are zero from the start."""

    _zero: ZeroGroups | None = None

    @torch.no_grad()
    def start(self) -> None:
        order = {
            layer["name"]: -torch.arange(len(layer["params"][0]), dtype=torch.float64, device=layer["params"][0].device)
            for layer in self.context.layers
        }
        removed = select(self.context, order, by_layer=True)
        for layer in self.context.layers:
            set_to_zero(layer, removed[layer["name"]])
        modules = dict(self.context.model.named_modules())
        for name, left in self.context.operations.layers().items():
            weight = modules[name].weight
            if left.inputs and isinstance(weight, nn.Parameter):
                weight.mul_(math.sqrt(left.all_inputs / left.inputs))

    def before_step(self) -> None:
        if self._zero is None:
            self._zero = ZeroGroups(self.context.layers)
        self._zero.clear([parameter.grad for parameter in self._zero.parameters])
