"""A minimum of an experiment with its hidden units in the order of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from torch import Tensor

from valleyscope.landscape.alignment.align import Aligner, Alignment, Method
from valleyscope.landscape.geometry.vectors import flatten
from valleyscope.training.checkpoints import load_checkpoint

if TYPE_CHECKING:
    from valleyscope.app.tasks.context import TaskContext


def aligned_minimum(context: TaskContext, name: str, to: str) -> tuple[Tensor, Alignment]:
    """The weights of a minimum in the order of another, and how it was found; NotAligned says why not."""
    networks = [context.network() for _ in (to, name)]
    for network, minimum in zip(networks, (to, name), strict=True):
        load_checkpoint(context.minimum_file(minimum), network)
    data = (context.data.x_train.cpu(), context.data.y_train.cpu())
    model, method = context.network(), cast("Method", context.spec.align)
    found = Aligner(model, networks[0], data, method=method).align(networks[1], name)
    return flatten(model, found.state), found
