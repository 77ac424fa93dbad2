"""The plain way to a landscape, which the fast one is compared with: float64, point by point, batch by batch."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape import Evaluator, flatten
from valleyscope.landscape.evaluation.accumulators import Values

COEFFICIENTS = np.array([[1.0, 0.0, 0.0], [1.0, 0.7, -0.4], [1.0, -1.3, 2.1]])


def samples(shape: tuple[int, ...], count: int, classes: int = 10, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, *shape, generator=generator), torch.randint(classes, (count,), generator=generator)


def basis_around(model: nn.Module, scale: float = 0.05) -> Tensor:
    origin = flatten(model)
    noise = torch.randn(2, origin.numel(), generator=torch.Generator().manual_seed(1))
    return torch.stack([origin, *(scale * direction for direction in noise * origin.abs().mean() * 10)])


def plain(model: nn.Module, basis: Tensor, data: dict[str, tuple[Tensor, Tensor]]) -> dict[str, np.ndarray]:
    """Loss and error at each point in float64; BatchNorm sees the whole training set as one batch.

    Beside them is the share of samples whose two best classes float32 need not tell apart, by processor and library.
    """
    exact = copy.deepcopy(model).double().eval()
    norms = [module for module in exact.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
    found: dict[str, list[tuple[float, float, float]]] = {split: [] for split in data}
    with torch.no_grad():
        for row in COEFFICIENTS:
            vector_to_parameters(torch.as_tensor(row) @ basis.double(), exact.parameters())
            if norms:
                set_population_statistics(exact, norms, data["train"][0].double())
            for split, (x, y) in data.items():
                logits = torch.cat([exact(part.double()) for part in x.split(7)])
                loss = cross_entropy(logits, y)
                best, second = logits.topk(2).values.T
                tied = (best - second <= 1e-5 * logits.abs().amax(1)).double().mean()
                found[split].append((float(loss), float((logits.argmax(1) != y).double().mean()), float(tied)))
    return {split: np.array(values) for split, values in found.items()}


def set_population_statistics(model: nn.Module, norms: list[nn.Module], x: Tensor) -> None:
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    model(x)
    for norm in norms:
        norm.eval()
    # torch keeps the unbiased variance; a second pass replaces it by the biased one that it normalised with
    captured: dict[nn.Module, Tensor] = {}
    hooks = [
        norm.register_forward_pre_hook(lambda module, args: captured.__setitem__(module, args[0])) for norm in norms
    ]
    for norm in norms:
        norm.train()
    model(x)
    for norm, hook in zip(norms, hooks, strict=True):
        hook.remove()
        norm.eval()
        inputs = captured[norm]
        norm.running_var = inputs.var([0, *range(2, inputs.dim())], unbiased=False)


def assert_exact(model: nn.Module, data: dict[str, tuple[Tensor, Tensor]]) -> None:
    basis = basis_around(model)
    assert_equals_plain(Evaluator(model, data).at(basis, COEFFICIENTS), plain(model, basis, data))


def assert_equals_plain(values: Mapping[str, Values], expected: Mapping[str, np.ndarray]) -> None:
    for split, (loss, error, tied) in ((split, found.T) for split, found in expected.items()):
        np.testing.assert_allclose(values[split].loss, loss, rtol=1e-5)
        assert (np.abs(values[split].error - error) <= tied).all(), (split, values[split].error, error)
