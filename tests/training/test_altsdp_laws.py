"""What must hold for AltSDP whatever the network: its limits, its exact zeros, its symmetries."""

from __future__ import annotations

import copy
import itertools
import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.reference import (
    MODES,
    RATES,
    STEPS,
    STRUCTURES,
    Case,
    assert_same_bits,
    descend,
    network,
    positions,
    weights_of,
)
from valleyscope.training.altsdp import AltSDP
from valleyscope.training.parameter_groups import partition
from valleyscope.training.zero_groups import sparsity


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("momentum", "weight_decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.01), (0.9, 0.01)])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("mode", MODES)
def test_without_threshold_it_is_torch_sgd_to_the_bit(
    mode: str, memory_format: torch.memory_format, momentum: float, weight_decay: float, dtype: torch.dtype
) -> None:
    ours, x, y = network(dtype)
    ours.to(memory_format=memory_format)  # type: ignore[call-overload]
    theirs = copy.deepcopy(ours)
    common = {"lr": 0.07, "momentum": momentum, "weight_decay": weight_decay}
    altsdp_losses = descend(ours, AltSDP(partition(ours), c=0.0, mode=mode, **common), x, y, 15)  # type: ignore[arg-type]
    sgd_losses = descend(theirs, torch.optim.SGD(theirs.parameters(), **common), x, y, 15)
    assert altsdp_losses == sgd_losses
    assert sgd_losses[-1] < sgd_losses[0]
    assert_same_bits(ours, theirs)


@pytest.mark.parametrize("mode", MODES)
def test_unthresholded_layers_descend_as_sgd_does(mode: str) -> None:
    """The rest of a partition sees no threshold, also where the fused kernel takes the step."""
    case = Case(mode=mode, momentum=0.9, weight_decay=0.1, c=1.0)
    rest = case.groups[-1]["params"]
    twins = [nn.Parameter(parameter.detach().clone()) for parameter in rest]
    ours = case.optimizer()
    theirs = torch.optim.SGD(twins, lr=RATES[0], momentum=0.9, weight_decay=0.1)
    for _ in range(5):
        case.gradients()
        for parameter, twin in zip(rest, twins, strict=True):
            twin.grad = parameter.grad.clone()
        ours.step()
        theirs.step()
    for parameter, twin in zip(rest, twins, strict=True):
        torch.testing.assert_close(parameter, twin, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("mu", [0.4, 0.51, 0.6])
def test_elements_in_dual_mode_at_constant_rate_are_grda(mu: float) -> None:
    """gRDA: w_n = sign(v_n) (|v_n| - c γ^½ (nγ)^μ)_+ with v_n = w_0 - γ Σ gradients."""
    torch.manual_seed(0)
    lr, c, steps = 0.1, 0.15, 200
    model = nn.Linear(30, 8).double()
    v = model.weight.detach().clone()
    bias = model.bias.detach().clone()
    optimizer = AltSDP(partition(model, "element", skip_output=False), lr=lr, c=c, mu=mu, mode="dual")
    for n in range(1, steps + 1):
        for parameter in model.parameters():
            parameter.grad = 0.1 * torch.randn_like(parameter)
        v -= lr * model.weight.grad  # type: ignore[arg-type]
        bias -= lr * model.bias.grad
        optimizer.step()
        expected = v.sign() * (v.abs() - c * math.sqrt(lr) * (n * lr) ** mu).clamp_min(0)
        torch.testing.assert_close(model.weight.detach(), expected, rtol=1e-9, atol=1e-12)
    assert 0 < torch.count_nonzero(model.weight) < model.weight.numel()
    torch.testing.assert_close(model.bias.detach(), bias)


@pytest.mark.parametrize("mode", ["dual", "cumulative"])
def test_dual_modes_threshold_the_sum_of_the_steps_not_the_weights(mode: str) -> None:
    """A removed group comes back where v outgrows the threshold; in `prox` its memory is lost."""
    weights = {}
    for name in (mode, "prox"):
        parameter = nn.Parameter(torch.full((1, 2), 0.3))
        optimizer = AltSDP([parameter], lr=0.1, c=0.5, mu=0.5, mode=name)  # type: ignore[arg-type]
        trail = []
        for _ in range(40):
            parameter.grad = torch.full_like(parameter, -0.12)
            optimizer.step()
            trail.append(float(parameter.detach().abs().sum()))
        weights[name] = trail
    v = [math.sqrt(2) * (0.3 + 0.012 * n) for n in range(1, 41)]
    sums = list(itertools.accumulate(0.5 * math.sqrt(0.1) * math.sqrt(0.1 * n) for n in range(1, 41)))
    dual = [0.5 * math.sqrt(0.1) * math.sqrt(0.1 * n) for n in range(1, 41)]
    threshold = dual if mode == "dual" else sums
    expected = [math.sqrt(2) * max(0.0, norm - g) for norm, g in zip(v, threshold, strict=True)]
    np.testing.assert_allclose(weights[mode], expected, rtol=1e-5, atol=1e-6)
    assert weights["prox"][-1] == 0


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("mode", MODES)
def test_removed_groups_are_exact_zeros_and_are_counted(mode: str, structure: str) -> None:
    case = Case(structure, dtype=torch.float32, mode=mode, momentum=0.9)
    case.run(case.optimizer())
    report = sparsity(case.groups)
    counted = 0
    for group, layer, reference in zip(case.groups, report.layers, case.references, strict=False):
        zero = sum(
            all(float(group["params"][tensor].detach()[index]) == 0 for tensor, index in members)
            for members in positions([parameter.shape for parameter in group["params"]], structure)
        )
        assert layer.zero_groups == zero == reference.zero
        counted += zero
    assert counted > 0
    assert report.groups == counted / sum(layer.groups for layer in report.layers)


def test_removed_groups_stay_zero_while_gradients_are_below_the_threshold() -> None:
    weight = nn.Parameter(torch.tensor([[3.0, 4.0], [0.003, 0.004]]))
    optimizer = AltSDP([weight], lr=0.1, c=0.1, mu=0.5)
    for _ in range(20):
        weight.grad = torch.full_like(weight, 0.01)
        optimizer.step()
        assert torch.count_nonzero(weight[1]) == 0
        assert torch.count_nonzero(weight[0]) == 2


@pytest.mark.parametrize("floor", [0.0, 0.5])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("mode", MODES)
def test_groups_of_norm_zero_give_no_nan(mode: str, structure: str, floor: float) -> None:
    case = Case(structure, dtype=torch.float32, mode=mode, momentum=0.9, floor=floor, c=1e-3)
    for parameter in case.model.parameters():
        parameter.data.zero_()
    optimizer = case.optimizer()
    for _ in range(3):
        for parameter in case.model.parameters():
            parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    assert all(torch.equal(parameter, torch.zeros_like(parameter)) for parameter in case.model.parameters())


@pytest.mark.parametrize("mode", MODES)
def test_scaling_weights_gradients_and_c_scales_the_run(mode: str) -> None:
    """All steps are homogeneous of degree one in (w, gradient, c); powers of two scale without rounding."""
    factor = 4.0
    results = []
    for scale in (1.0, factor):
        case = Case(mode=mode, momentum=0.9, weight_decay=0.1)
        case.settings["c"] *= scale
        with torch.no_grad():
            for parameter in case.model.parameters():
                parameter.mul_(scale)
        optimizer = case.optimizer()
        for _ in range(STEPS):
            case.gradients()
            for parameter in case.model.parameters():
                parameter.grad.mul_(scale)  # type: ignore[union-attr]
            optimizer.step()
        results.append(weights_of(case.model))
    for small, large in zip(*results, strict=True):
        assert torch.equal(small * factor, large)


@pytest.mark.parametrize("mode", MODES)
def test_rotating_the_inside_of_groups_rotates_the_result(mode: str) -> None:
    """A group is thresholded by its norm only, so an orthogonal change of coordinates commutes with every step."""
    torch.manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(6, 6, dtype=torch.float64)).Q
    start = torch.randn(9, 6, dtype=torch.float64)
    gradients = torch.randn(12, 9, 6, dtype=torch.float64)
    results = []
    for turn in (torch.eye(6, dtype=torch.float64), rotation):
        weight = nn.Parameter(start @ turn)
        c = 3.5 if mode == "dual" else 0.45
        optimizer = AltSDP([weight], c=c, mode=mode, momentum=0.5, weight_decay=0.1)  # type: ignore[arg-type]
        for gradient in gradients:
            weight.grad = gradient @ turn
            optimizer.step()
        results.append(weight.detach())
    torch.testing.assert_close(results[0] @ rotation, results[1], rtol=1e-12, atol=1e-12)
    assert 0 < torch.count_nonzero(results[0]) < results[0].numel()


@pytest.mark.parametrize("mode", MODES)
def test_permuting_filters_permutes_the_result(mode: str) -> None:
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.manual_seed(0)
    start, gradients = torch.randn(5, 7), torch.randn(10, 5, 7)
    results = []
    for index in (torch.arange(5), order):
        weight = nn.Parameter(start[index])
        optimizer = AltSDP([weight], c=0.5, mode=mode, momentum=0.9)  # type: ignore[arg-type]
        for gradient in gradients:
            weight.grad = gradient[index]
            optimizer.step()
        results.append(weight.detach())
    torch.testing.assert_close(results[0][order], results[1], rtol=1e-6, atol=1e-7)
