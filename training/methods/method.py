"""The interface of pruning methods: hooks around the ordinary training loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

from valleyscope.training.batch_norm import NORMS
from valleyscope.training.datasets import Dataset
from valleyscope.training.models.remaining_operations import RemainingOperations
from valleyscope.training.optimizer_builder import build_optimizer
from valleyscope.training.parameter_groups import ParameterGroup, broadcast_masks, prunable
from valleyscope.training.settings import Training

DirectionFactors = Callable[[nn.Module, Sequence[ParameterGroup], Training], Tensor]
"""One s_i for every group of a partition, in its order, from the network as it is now."""


@dataclass(frozen=True)
class RunContext:
    """What a method knows of its run: `steps` is the number of steps in an epoch.

    `direction_factors` computes the factors s_i of all groups, for methods that need them; it comes from the caller.
    """

    model: nn.Module
    groups: Sequence[ParameterGroup]
    data: Dataset
    settings: Training
    steps: int
    direction_factors: DirectionFactors | None = None

    @cached_property
    def layers(self) -> list[ParameterGroup]:
        """The prunable layers of the partition."""
        return list(prunable(self.groups))

    @cached_property
    def operations(self) -> RemainingOperations:
        return RemainingOperations(self.model, self.groups, self.data.shape)

    @cached_property
    def norm_parameters(self) -> dict[str, tuple[Tensor, Tensor]]:
        """γ and β of the BatchNorm in the groups of a layer, by layer."""
        norms = {norm.weight: norm for norm in self.model.modules() if isinstance(norm, NORMS) and norm.affine}
        found: dict[str, tuple[Tensor, Tensor]] = {}
        for layer in self.layers:
            for parameter in layer["params"][1:]:
                if parameter in norms:
                    found[layer["name"]] = (parameter, norms[parameter].bias)
        return found

    @property
    def main_steps(self) -> int:
        """Steps of this run before the cut."""
        return (self.settings.main_epochs - self.settings.first_epoch) * self.steps

    @property
    def first_step(self) -> int:
        """Steps before this run: those that a fork shares with its trunk."""
        return self.settings.first_epoch * self.steps

    def sgd(self, lr: float) -> SGD:
        """Plain SGD over all parameters, with the run's momentum and weight decay."""
        everything = [parameter for group in self.groups for parameter in group["params"]]
        return SGD(everything, lr=lr, momentum=self.settings.momentum, weight_decay=self.settings.weight_decay)

    def optimizer(self) -> Optimizer:
        """The optimiser that the settings name, over all parameters."""
        return build_optimizer([parameter for group in self.groups for parameter in group["params"]], self.settings)


class Method:
    """Hooks around the training loop. This one does nothing: plain SGD.

    The loop calls `start` once (not when a run is resumed), then for every step `before_step` (gradients are there) and
    `after_step`, `after_epoch` before an epoch is measured, and after the last one `removed_at_the_end`: the loop sets
    those groups to zero, calls `after_cut`, estimates BatchNorm statistics anew and measures before and after.
    `facts` are recorded with the minimum; they and all else that a resumed run needs are in `state_dict`.
    """

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.facts: dict[str, Any] = {}

    def optimizer(self) -> Optimizer:
        """The optimiser of the epochs before the cut; called once."""
        return self.context.optimizer()

    def start(self) -> None:
        """Before the first step."""

    def start_after(self, steps: int) -> None:
        """Before `start` of a fork: its trunk took so many steps, without this method or with other options."""

    def before_step(self) -> None:
        """Gradients are there: add the gradient of a penalty, or remove those of zero groups."""

    def after_step(self, step: int) -> None:
        """After the optimiser's step number `step` of the run, counted from 1."""

    def after_epoch(self, epoch: int) -> None:
        """After an epoch, counted from 1, before it is measured."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        """Which groups of each layer the cut removes, True for removed; None without a cut."""
        return None

    def after_cut(self, original: nn.Module) -> None:
        """The groups are zero now; `original` is the network before. Refit other weights here."""

    def state_dict(self) -> dict[str, Any]:
        return {"facts": self.facts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.facts = state.get("facts", {})


@torch.no_grad()
def set_to_zero(layer: ParameterGroup, removed: Tensor) -> None:
    """Make some groups of one layer exactly zero, with their bias, γ and β."""
    for parameter, mask in broadcast_masks(layer, removed):
        parameter.masked_fill_(mask, 0.0)


@torch.no_grad()
def scale_groups(layer: ParameterGroup, chosen: Tensor, factor: float) -> None:
    """Multiply the weights of some groups of one layer."""
    for parameter, mask in broadcast_masks(layer, chosen):
        parameter.mul_(torch.where(mask, factor, 1.0))


@torch.no_grad()
def multiply_groups(layer: ParameterGroup, factors: Tensor) -> None:
    """Multiply each group of one layer by its own factor."""
    for parameter, shaped in broadcast_masks(layer, factors):
        parameter.mul_(shaped.to(parameter.dtype))
