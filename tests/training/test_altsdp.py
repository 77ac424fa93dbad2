"""AltSDP against a straightforward implementation of its equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.reference import MODES, RATES, STEPS, STRUCTURES, Case, Reference, scale_for
from valleyscope.training import _blocks
from valleyscope.training.altsdp import AltSDP
from valleyscope.training.zero_groups import sparsity

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("momentum", "weight_decay"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.1), (0.5, 0.05)])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("mode", MODES)
def test_steps_equal_the_paper_group_by_group(
    mode: str, structure: str, momentum: float, weight_decay: float, dtype: torch.dtype, device: str
) -> None:
    case = Case(structure, dtype, device=device, mode=mode, momentum=momentum, weight_decay=weight_decay)
    case.run(case.optimizer())
    case.check(1e-12 if dtype == torch.float64 else 2e-5)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("mu", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("mode", MODES)
def test_other_exponents_and_groups_without_bias(mode: str, mu: float, bias: bool) -> None:
    c = scale_for(0.8 if bias else 0.5, {"mode": mode, "mu": mu, "momentum": 0.0})
    case = Case(mode=mode, mu=mu, bias=bias, c=c)
    case.run(case.optimizer())
    case.check()


@pytest.mark.parametrize("slab", [1, 40, 100, 1 << 20])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize(("mode", "momentum", "weight_decay"), [("prox", 0.9, 0.1), ("dual", 0.9, 0.1)])
def test_layers_may_be_cut_and_lie_in_any_memory_order(
    mode: str,
    momentum: float,
    weight_decay: float,
    structure: str,
    memory_format: torch.memory_format,
    slab: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_blocks, "SLAB_SIZE", slab)
    case = Case(structure, memory_format=memory_format, mode=mode, momentum=momentum, weight_decay=weight_decay)
    case.run(case.optimizer())
    case.check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_gradients_may_change_their_memory_order_between_steps(mode: str, order: tuple[int, int]) -> None:
    layouts = (torch.channels_last, torch.contiguous_format)
    case = Case("kernel", memory_format=torch.channels_last, mode=mode, momentum=0.9, weight_decay=0.1)
    optimizer = case.optimizer()
    for n in range(STEPS):
        fourth = layouts[order[n % 2]]
        gradients = case.gradients()
        for group, reference in zip(case.groups, case.references, strict=True):
            for parameter in group["params"]:
                if parameter.dim() == 4:
                    parameter.grad = parameter.grad.contiguous(memory_format=fourth)
            reference.step([parameter.grad for parameter in group["params"]], RATES[n])
        assert len(gradients) == 4
        for group in optimizer.param_groups:
            group["lr"] = RATES[n]
        optimizer.step()
    case.check()


@pytest.mark.parametrize("mode", MODES)
def test_network_may_change_its_memory_order_between_steps(mode: str) -> None:
    case = Case(mode=mode, momentum=0.9)
    optimizer = case.optimizer()
    case.run(optimizer, range(4))
    case.model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    case.run(optimizer, range(4, STEPS))
    case.check()


def test_transposed_and_strided_weights_are_thresholded_by_their_rows() -> None:
    torch.manual_seed(0)
    plain = [torch.randn(5, 4, dtype=torch.float64), torch.randn(3, 8, dtype=torch.float64)]
    odd = [plain[0].t().contiguous().t(), torch.randn(3, 16, dtype=torch.float64)[:, ::2].copy_(plain[1])]
    gradients = [torch.randn_like(weight) for weight in plain]
    results = []
    for weights in (plain, odd):
        parameters = [nn.Parameter(weight) for weight in weights]
        optimizer = AltSDP(parameters, c=0.2, momentum=0.9)
        for _ in range(6):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = torch.empty_like(parameter).copy_(gradient)
            optimizer.step()
        results.append([parameter.detach().clone() for parameter in parameters])
    for first, second in zip(*results, strict=True):
        torch.testing.assert_close(first, second, rtol=1e-13, atol=1e-13)
        assert first.abs().max() > 0


@pytest.mark.parametrize("floor", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("slab", [1, 70, 1 << 20])
@pytest.mark.parametrize("mode", MODES)
def test_floor_lowers_the_threshold_of_a_layer(
    mode: str, slab: int, floor: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_blocks, "SLAB_SIZE", slab)
    settings = {"mode": mode, "mu": 0.51, "momentum": 0.9}
    case = Case(mode=mode, momentum=0.9, floor=floor, c=scale_for(8.0, settings))  # would remove nearly everything
    case.run(case.optimizer())
    case.check()
    for layer in sparsity(case.groups).layers:
        assert layer.groups - layer.zero_groups >= math.ceil(floor * layer.groups)


def test_floor_of_one_prunes_nothing_and_no_floor_prunes_everything() -> None:
    for floor, share in ((1.0, 0.0), (0.0, 1.0)):
        case = Case(floor=floor, c=1e3)
        case.run(case.optimizer())
        assert sparsity(case.groups).groups == share


def test_floor_holds_among_groups_of_equal_norm() -> None:
    weight = nn.Parameter(torch.ones(10, 4))
    optimizer = AltSDP([weight], c=100.0, floor=0.3)
    for _ in range(3):
        weight.grad = torch.zeros_like(weight)
        optimizer.step()
    assert torch.count_nonzero(weight.abs().sum(1)) >= 3


def test_bare_parameters_are_thresholded_by_rows_and_vectors_never() -> None:
    case = Case(mode="prox", momentum=0.5, weight_decay=0.1)
    parameters = list(case.model.parameters())
    references = [
        Reference([parameter], "filter" if parameter.dim() > 1 else None, **case.settings) for parameter in parameters
    ]
    optimizer = AltSDP(case.model.parameters(), **case.settings)
    for n in range(STEPS):
        case.gradients()
        optimizer.param_groups[0]["lr"] = RATES[n]
        for parameter, reference in zip(parameters, references, strict=True):
            assert parameter.grad is not None
            reference.step([parameter.grad], RATES[n])
        optimizer.step()
    for parameter, reference in zip(parameters, references, strict=True):
        np.testing.assert_allclose(parameter.detach().numpy(), reference.w[0], rtol=1e-12, atol=1e-12)
    assert any(reference.zero for reference in references if reference.structure)


def test_parameter_groups_have_their_own_settings() -> None:
    case = Case()
    own = [
        {"c": 0.8, "mu": 0.4, "momentum": 0.9},
        {"c": 0.5, "mu": 0.51, "weight_decay": 0.2},
        {"c": 0.3, "mode": "dual"},
        {"momentum": 0.3},
    ]
    for index, settings in enumerate(own):
        case.groups[index] |= settings
        group = case.groups[index]
        case.references[index] = Reference(group["params"], group["structure"], **case.settings | settings)
    case.run(case.optimizer())
    case.check()


def test_groups_of_several_float_types_step_together() -> None:
    wide, narrow = nn.Parameter(torch.ones(3, 4, dtype=torch.float64)), nn.Parameter(torch.ones(3, 4))
    for optimizer in (AltSDP([wide, narrow], c=0.01), AltSDP([wide, narrow], c=0.01, momentum=0.9)):
        wide.grad, narrow.grad = torch.full_like(wide, 0.1), torch.full_like(narrow, 0.1)
        optimizer.step()
        optimizer.step()
    assert wide.dtype == torch.float64
    torch.testing.assert_close(wide.detach().float(), narrow.detach())
    assert 0 < wide[0, 0] < 1
