"""The losses that a run can minimise: mean over a batch, and sums over a set with the number of right predictions.

    cross_entropy   logits (N, classes), class numbers (N,)
    mse, l1         outputs and targets of one shape, averaged over all dimensions but the first
    bce             logits and targets in [0, 1] of one shape, for several labels

Imports torch only where it computes: a spec names a loss in processes without torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from torch import Tensor

LossName = Literal["cross_entropy", "mse", "l1", "bce"]
IN_NATS: tuple[LossName, ...] = ("cross_entropy", "bce")
"""Losses in nats; others have a unit of their own."""


def batch_loss(loss: LossName, output: Tensor, target: Tensor) -> Tensor:
    """The mean loss of a batch, with its gradient."""
    from torch.nn import functional

    if loss == "cross_entropy":
        return functional.cross_entropy(output, target)
    output = output.reshape(target.shape)
    if loss == "bce":
        return functional.binary_cross_entropy_with_logits(output, target)
    return functional.mse_loss(output, target) if loss == "mse" else functional.l1_loss(output, target)


def sums(loss: LossName, output: Tensor, target: Tensor) -> tuple[Tensor, Tensor | None]:
    """The sum of the losses of samples, in float64, and the number of right predictions (None without a notion of it).

    With several labels a sample counts by the share of its labels that are right.
    """
    if loss == "cross_entropy":
        from torch.nn.functional import cross_entropy

        # float64 from here: for a confident network -log(1+ε) in float32 is mostly rounding
        return cross_entropy(output.double(), target, reduction="sum"), (output.argmax(1) == target).sum()
    output = output.reshape(target.shape)
    total = batch_loss(loss, output.double(), target.double()) * len(target)
    if loss != "bce":
        return total, None
    right = (output > 0) == (target > 0.5)
    return total, right.double().flatten(1).mean(1).sum() if right.dim() > 1 else right.sum()
