"""The metrics of a run after each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from valleyscope.training.losses import LossName, sums
from valleyscope.training.parameter_groups import ParameterGroup
from valleyscope.training.zero_groups import LayerSparsity, Sparsity, angle, sparsity

# Large enough to fill the vector units, small enough that activations stay in cache.
_BLOCK = 256
_MAY_BE_NAN = ("train_accuracy", "test_accuracy", "angle")


@dataclass(frozen=True)
class Epoch:
    """Metrics after an epoch; losses in nats, or in their own unit, accuracies as fractions, the angle in degrees.

    Accuracies are NaN for losses of numbers such as `mse`. `threshold` is G, AltSDP's accumulated threshold. Losses are
    means over the full sets without augmentation.
    """

    epoch: int
    train_loss: float
    train_accuracy: float
    test_loss: float
    test_accuracy: float
    sparsity: float
    zero_groups: float
    learning_rate: float
    threshold: float
    angle: float
    seconds: float
    layers: tuple[LayerSparsity, ...]

    def to_json(self) -> dict[str, Any]:
        """JSON values; an undefined angle (all groups zero) or accuracy is None, since JSON has no NaN."""
        return asdict(self) | {name: None for name in _MAY_BE_NAN if math.isnan(getattr(self, name))}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Epoch:
        layers = tuple(LayerSparsity(**layer) for layer in values["layers"])
        undefined = {name: math.nan for name in _MAY_BE_NAN if values[name] is None}
        return cls(**{**values, "layers": layers, **undefined})


@torch.inference_mode()
def loss_and_accuracy(model: nn.Module, x: Tensor, y: Tensor, loss: LossName = "cross_entropy") -> tuple[float, float]:
    """Mean loss and accuracy over a whole set, in evaluation mode, summed in float64."""
    training = model.training
    model.eval()
    total = torch.zeros((), dtype=torch.float64, device=x.device)
    right: Tensor | None = None
    for start in range(0, len(x), _BLOCK):
        found, correct = sums(loss, model(x[start : start + _BLOCK]), y[start : start + _BLOCK])
        total += found
        if correct is not None:
            right = correct if right is None else right + correct
    model.train(training)
    return float(total) / len(x), math.nan if right is None else right.item() / len(x)


def measure(
    model: nn.Module,
    groups: Sequence[ParameterGroup],
    splits: Mapping[str, tuple[Tensor, Tensor]],
    *,
    epoch: int,
    learning_rate: float,
    threshold: float,
    seconds: float,
    loss: LossName = "cross_entropy",
) -> Epoch:
    """All metrics of the network as it is now."""
    train_loss, train_accuracy = loss_and_accuracy(model, *splits["train"], loss)
    test_loss, test_accuracy = loss_and_accuracy(model, *splits["test"], loss)
    zeros: Sparsity = sparsity(groups)
    return Epoch(
        epoch=epoch,
        train_loss=train_loss,
        train_accuracy=train_accuracy,
        test_loss=test_loss,
        test_accuracy=test_accuracy,
        sparsity=zeros.parameters,
        zero_groups=zeros.groups,
        learning_rate=learning_rate,
        threshold=threshold,
        angle=angle(groups),
        seconds=seconds,
        layers=zeros.layers,
    )
