"""A cut: groups become zero at once. What it costs is measured, with and without new BatchNorm statistics."""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any

import torch

from valleyscope.training.batch_norm import norms_of, reestimate_statistics
from valleyscope.training.epochs import loss_and_accuracy
from valleyscope.training.methods.method import Method, RunContext, set_to_zero
from valleyscope.training.zero_groups import sparsity


def cut(context: RunContext, method: Method, epoch: int) -> dict[str, Any] | None:
    """Set to zero what the method removes after `epoch` epochs; returns the measurements, None without a cut.

    BatchNorm statistics are those of other activations then, so they are estimated anew; the loss with the stale ones
    stands beside it.
    """
    removed = method.removed_at_the_end()
    if removed is None:
        return None
    facts: dict[str, Any] = {"epoch": epoch, "zero_groups_before": sparsity(context.groups).groups}
    facts |= _measured(context, "before")
    original = deepcopy(context.model)
    for layer in context.layers:
        set_to_zero(layer, removed[layer["name"]])
    method.after_cut(original)
    if norms_of(context.model):
        facts |= _measured(context, "stale")
        reestimate_statistics(context.model, context.data.x_train)
    facts |= _measured(context, "after")
    return facts | {"collapsed": has_collapsed(context, facts.get("test_accuracy_after", math.nan))}


def has_collapsed(context: RunContext, accuracy: float) -> bool:
    """Whether a test accuracy is close to guessing: at most twice the share of the most frequent class."""
    if context.data.loss != "cross_entropy":
        return False
    labels = context.data.y_test
    return accuracy <= 2 * float(torch.bincount(labels).max()) / len(labels)


def _measured(context: RunContext, when: str) -> dict[str, float]:
    train_loss, train_accuracy = loss_and_accuracy(context.model, *context.data.splits["train"], context.data.loss)
    test_loss, test_accuracy = loss_and_accuracy(context.model, *context.data.splits["test"], context.data.loss)
    found = {
        f"train_loss_{when}": train_loss,
        f"train_accuracy_{when}": train_accuracy,
        f"test_loss_{when}": test_loss,
        f"test_accuracy_{when}": test_accuracy,
    }
    return {name: value for name, value in found.items() if not math.isnan(value)}
