"""CP, channel pruning (He, Zhang and Sun 2017): channels by LASSO on the layer that reads them, then least squares.

For a layer whose outputs one other layer reads, with X_c its inputs that come from filter c and W_c the weights that
read them, β says which filters stay:

    min over β  ½ ||Y - Σ_c β_c X_c W_c||² + λ ||β||_1,   Y = Σ_c X_c W_c

With G_cd = <X_c W_c, X_d W_d> this is ½ βᵀGβ - (G1)ᵀβ + λ||β||_1, solved by coordinate descent while λ grows until the
wished number of β is left. Then all layers are refitted by least squares (`least_squares`). Where several layers
read the outputs, as after a residual addition, filters are chosen by norm. Every layer loses the same share.
"""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from valleyscope.training.batch_norm import NORMS
from valleyscope.training.methods.least_squares import at_layer, input_rows, refit
from valleyscope.training.methods.method import Method
from valleyscope.training.methods.scores import norm_scores
from valleyscope.training.methods.selection import select

_IMAGES = 256
_POSITIONS = 16
_GROWTH = 1.3
_MODULES = (nn.ReLU, nn.MaxPool2d, nn.AvgPool2d, nn.AdaptiveAvgPool2d, nn.Dropout, nn.Identity, nn.Flatten, *NORMS)


class ChannelPruning(Method):
    """cp."""

    def removed_at_the_end(self) -> dict[str, Tensor] | None:
        scores = norm_scores(self.context)
        modules = dict(self.context.model.named_modules())
        samples = self.context.data.x_train[:_IMAGES]
        for name, reader in readers(self.context.model).items():
            layer = modules[reader]
            if name in scores and isinstance(layer, nn.Conv2d | nn.Linear) and getattr(layer, "groups", 1) == 1:
                gram = channel_gram(self.context.model, layer, samples, len(scores[name]))
                scores[name] = lasso_ranks(gram).to(scores[name])
        return select(self.context, scores, by_layer=True)

    def after_cut(self, original: nn.Module) -> None:
        refit(self.context.model, original, self.context.data.x_train)


def readers(model: nn.Module) -> dict[str, str]:
    """The layer that alone reads the outputs of a layer, through activations, pooling, BatchNorm and flattening."""
    try:
        graph = fx.Tracer().trace(model)
    except Exception:  # tracing runs custom code on symbols, which may raise anything
        return {}
    modules = dict(model.named_modules())
    layers = (nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Linear)
    found: dict[str, str] = {}
    for node in graph.nodes:
        if node.op != "call_module" or not isinstance(modules[str(node.target)], layers):
            continue
        here = node
        while len(here.users) == 1:
            here = next(iter(here.users))
            module = modules.get(str(here.target)) if here.op == "call_module" else None
            if isinstance(module, layers):
                found[str(node.target)] = str(here.target)
            if not isinstance(module, _MODULES):
                break
    return found


@torch.no_grad()
def channel_gram(model: nn.Module, layer: nn.Conv2d | nn.Linear, samples: Tensor, channels: int) -> Tensor:
    """G_cd = <X_c W_c, X_d W_d> over samples, positions and outputs: Σ of (XᵀX) ∘ (WᵀW) over the weights of c and d."""
    training = model.training
    model.eval()
    inputs, _ = at_layer(model, layer, samples)
    model.train(training)
    rows = input_rows(layer, inputs)
    stride = max(1, rows.shape[1] // _POSITIONS)
    x = rows[:, ::stride].flatten(0, 1).double()
    w = layer.weight.detach().flatten(1).double()
    each = w.shape[1] // channels
    return ((x.T @ x) * (w.T @ w)).view(channels, each, channels, each).sum((1, 3))


def lasso_ranks(gram: Tensor) -> Tensor:
    """The order in which channels leave as λ grows: the rank of each channel, 0 for the first that leaves."""
    gram = gram.cpu()
    count = len(gram)
    target = gram.sum(1)
    beta = torch.ones(count, dtype=gram.dtype)
    ranks = torch.full((count,), float(count))
    left = torch.ones(count, dtype=torch.bool)
    strength = 1e-4 * float(target.abs().max().clamp_min(1e-30))
    gone = 0
    while left.any():
        beta = solve_lasso(gram, target, strength, beta)
        leaving = (left & (beta == 0)).nonzero().flatten().tolist()
        # Of those that leave together the one that contributed less goes first.
        for channel in sorted(leaving, key=lambda index: float(gram[index, index])):
            ranks[channel] = gone
            left[channel] = False
            gone += 1
        beta = torch.where(left, beta, 0)
        strength *= _GROWTH
    return ranks


def solve_lasso(gram: Tensor, target: Tensor, strength: float, start: Tensor, sweeps: int = 50) -> Tensor:
    """min ½ βᵀGβ - bᵀβ + λ||β||_1 by coordinate descent from `start`."""
    beta = start.clone()
    residual = target - gram @ beta
    diagonal = gram.diagonal()
    for _ in range(sweeps):
        largest = 0.0
        for index in range(len(beta)):
            if diagonal[index] <= 0:
                beta[index] = 0.0
                continue
            free = residual[index] + diagonal[index] * beta[index]
            new = torch.sign(free) * (free.abs() - strength).clamp_min(0) / diagonal[index]
            change = float(new - beta[index])
            if change:
                residual -= change * gram[:, index]
                beta[index] = new
                largest = max(largest, abs(change))
        if largest < 1e-6:
            break
    return beta
