"""Scores of groups: the lower, the less is lost without the group.

norm    ||w_i||, with bias, γ and β of the group
gamma   |γ_i| of the BatchNorm that follows (Liu et al. 2017)
taylor  Σ over batches (w_i · ∂L/∂w_i)² (Molchanov et al. 2019)
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from valleyscope.training.losses import batch_loss
from valleyscope.training.methods.method import RunContext
from valleyscope.training.parameter_groups import ParameterGroup, companion_rows, group_dims, group_norms

Scores = dict[str, Tensor]
# Training samples for gradients: enough for a ranking, and a fraction of an epoch on large sets.
_MOST_SAMPLES = 4096


def scores(context: RunContext, kind: str) -> Scores:
    """The scores of all groups by layer."""
    return {"norm": norm_scores, "gamma": gamma_scores, "taylor": taylor_scores}[kind](context)


def norm_scores(context: RunContext) -> Scores:
    return {layer["name"]: group_norms(layer) for layer in context.layers}


def gamma_scores(context: RunContext) -> Scores:
    """|γ|; infinite, so never cut, in layers without BatchNorm."""
    found = {}
    for layer in context.layers:
        norm = context.norm_parameters.get(layer["name"])
        found[layer["name"]] = (
            torch.full_like(group_norms(layer), math.inf) if norm is None else norm[0].detach().abs().clone()
        )
    return found


def taylor_scores(context: RunContext) -> Scores:
    """Summed over batches of the training set in evaluation mode; gradients of the network are left as they were."""
    model, data = context.model, context.data
    stride = -(-len(data.x_train) // _MOST_SAMPLES)
    x, y = data.x_train[::stride], data.y_train[::stride]
    parameters = [parameter for layer in context.layers for parameter in layer["params"]]
    total = {layer["name"]: torch.zeros_like(group_norms(layer)) for layer in context.layers}
    training = model.training
    model.eval()
    size = context.settings.batch_size
    with torch.enable_grad():
        for start in range(0, len(x), size):
            loss = batch_loss(data.loss, model(x[start : start + size]), y[start : start + size])
            gradients = iter(torch.autograd.grad(loss, parameters))
            for layer in context.layers:
                total[layer["name"]] += taylor_of(layer, [next(gradients) for _ in layer["params"]])
    model.train(training)
    return total


def taylor_of(layer: ParameterGroup, gradients: list[Tensor]) -> Tensor:
    """(w_i · ∂L/∂w_i)² of each group of a layer."""
    lead = layer["params"][0].detach()
    dims = group_dims(lead, layer["structure"])
    product = lead * gradients[0]
    found: Tensor = product.sum(dims) if dims else product
    for companion, gradient, rows in zip(layer["params"][1:], gradients[1:], companion_rows(layer), strict=True):
        found[rows] += (companion.detach() * gradient).view(len(companion), -1).sum(1)
    return found.flatten().square()


def effective_filters(context: RunContext, layer: ParameterGroup) -> Tensor:
    """The filters of a layer as rows, times |γ| where BatchNorm follows: without it their size says nothing."""
    rows: Tensor = layer["params"][0].detach().flatten(1)
    norm = context.norm_parameters.get(layer["name"])
    return rows if norm is None else rows * norm[0].detach().abs()[:, None]
