"""The metrics of a run after each epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from valleyscope.training.parameter_groups import ParameterGroup
from valleyscope.training.zero_groups import LayerSparsity, Sparsity, angle, sparsity

# Large enough to fill the vector units, small enough that activations stay in cache.
_BLOCK = 256


@dataclass(frozen=True)
class Epoch:
    """Metrics after an epoch; losses in nats, accuracies as fractions, the angle in degrees.

    `threshold` is G, AltSDP's accumulated threshold. Losses are means over the full sets without augmentation.
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
        """JSON values; an undefined angle (all groups zero) is None, since JSON has no NaN."""
        return asdict(self) | {"angle": None if math.isnan(self.angle) else self.angle}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Epoch:
        layers = tuple(LayerSparsity(**layer) for layer in values["layers"])
        return cls(**{**values, "layers": layers, "angle": math.nan if values["angle"] is None else values["angle"]})


@torch.inference_mode()
def loss_and_accuracy(model: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Mean cross-entropy and accuracy over a whole set, in evaluation mode, summed in float64."""
    training = model.training
    model.eval()
    loss = torch.zeros((), dtype=torch.float64, device=x.device)
    correct = torch.zeros((), dtype=torch.int64, device=x.device)
    for start in range(0, len(x), _BLOCK):
        logits = model(x[start : start + _BLOCK])
        target = y[start : start + _BLOCK]
        # float64 from here: for a confident network -log(1+ε) in float32 is mostly rounding
        loss += cross_entropy(logits.double(), target, reduction="sum")
        correct += (logits.argmax(1) == target).sum()
    model.train(training)
    return float(loss) / len(x), int(correct) / len(x)


def measure(
    model: nn.Module,
    groups: Sequence[ParameterGroup],
    splits: Mapping[str, tuple[Tensor, Tensor]],
    *,
    epoch: int,
    learning_rate: float,
    threshold: float,
    seconds: float,
) -> Epoch:
    """All metrics of the network as it is now."""
    train_loss, train_accuracy = loss_and_accuracy(model, *splits["train"])
    test_loss, test_accuracy = loss_and_accuracy(model, *splits["test"])
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
