"""AltSDP against a straightforward implementation of its equations, against laws, and as a torch optimiser."""

from __future__ import annotations

import copy
import io
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from training import _blocks
from training.altsdp import AltSDP
from training.groups import partition
from training.zeros import sparsity

MODES = ["prox", "dual", "cumulative"]
STRUCTURES = ["filter", "kernel", "vector", "element"]
# Accumulated thresholds that leave some groups and remove others, for weights of the networks below.
TARGETS = {"filter": 0.8, "kernel": 0.4, "vector": 0.25, "element": 0.12}
STEPS = 9
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def positions(shapes: Sequence[tuple[int, ...]], structure: str) -> Iterator[list[tuple[int, tuple[int, ...]]]]:
    """Groups of a layer, each a list of (tensor, index): the weight is tensor 0, what shares its rows comes after."""
    weight = shapes[0]
    if len(weight) == 2 and structure in ("kernel", "vector"):
        structure = "filter"
    outer = {"filter": 1, "kernel": 2, "vector": len(weight) - 1, "element": len(weight)}[structure]
    for head in itertools.product(*(range(size) for size in weight[:outer])):
        tails = itertools.product(*(range(size) for size in weight[outer:]))
        group: list[tuple[int, tuple[int, ...]]] = [(0, (*head, *tail)) for tail in tails]
        yield group + [(companion, head) for companion in range(1, len(shapes))]


class Reference:
    """The paper's updates in float64, one group after the other, for one layer; without a structure it is plain SGD."""

    def __init__(self, weights: Sequence[Tensor], structure: str | None, **settings: Any) -> None:
        self.w = [weight.detach().double().cpu().numpy().copy() for weight in weights]
        self.v = [weight.copy() for weight in self.w]
        self.momentum_buffer = [np.zeros_like(weight) for weight in self.w]
        self.structure = structure
        self.mode, self.c, self.mu = settings["mode"], settings["c"], settings["mu"]
        self.momentum, self.decay = settings["momentum"], settings["weight_decay"]
        self.floor = settings.get("floor", 0.0)
        self.n = 0
        self.sum = 0.0

    def step(self, gradients: Sequence[Tensor], lr: float) -> None:
        self.n += 1
        n, rate = self.n, lr / (1 - self.momentum)
        g = self.c * math.sqrt(rate) * (n * rate) ** self.mu
        before = (n - 1) ** self.mu if n > 1 else 0.0  # also at μ = 0 the threshold begins with the first step
        self.sum += self.c * rate ** (self.mu + 0.5) * (n**self.mu - before) if self.mode == "dual" else g
        threshold = g if self.mode == "prox" else self.sum
        moving = self.w if self.mode == "prox" or self.structure is None else self.v
        for i, gradient in enumerate(gradients):
            direction = gradient.double().cpu().numpy() + self.decay * self.w[i]
            self.momentum_buffer[i] = self.momentum * self.momentum_buffer[i] + direction
            moving[i] = moving[i] - lr * self.momentum_buffer[i]
        if self.structure is None:
            return
        groups = list(positions([weight.shape for weight in self.w], self.structure))
        norms = [math.sqrt(sum(moving[tensor][index] ** 2 for tensor, index in group)) for group in groups]
        keep = math.ceil(self.floor * len(groups))
        if self.floor and keep < len(groups):
            threshold = min(threshold, max((norm for norm in norms if norm < sorted(norms)[-keep]), default=0.0))
        elif self.floor:
            threshold = 0.0
        self.zero = 0
        for group, norm in zip(groups, norms, strict=True):
            scale = max(0.0, 1 - threshold / norm) if norm > 0 else 0.0
            self.zero += scale == 0
            for tensor, index in group:
                self.w[tensor][index] = scale * moving[tensor][index]


class Case:
    """A network, AltSDP on a partition of it, and the reference on the same layers under the same random gradients."""

    def __init__(
        self,
        structure: str = "filter",
        dtype: torch.dtype = torch.float64,
        memory_format: torch.memory_format = torch.contiguous_format,
        bias: bool = True,
        device: str = "cpu",
        **settings: Any,
    ) -> None:
        self.settings = {"mode": "prox", "mu": 0.51, "momentum": 0.0, "weight_decay": 0.0} | settings
        self.settings.setdefault("c", scale_for(TARGETS[structure], self.settings))
        torch.manual_seed(1)
        self.model = nn.Sequential(
            nn.Conv2d(3, 6, 3),
            nn.BatchNorm2d(6),
            nn.Conv2d(6, 4, (2, 3), bias=False),
            nn.Flatten(),
            nn.Linear(5, 7),
            nn.Linear(7, 3),
        )
        nn.init.normal_(self.model[1].weight)
        self.model.to(device, dtype, memory_format=memory_format)  # type: ignore[call-overload]
        self.groups = partition(self.model, structure, bias)  # type: ignore[arg-type]
        assert len(self.groups) == 4
        self.references = [Reference(group["params"], group["structure"], **self.settings) for group in self.groups]
        self.generator = torch.Generator().manual_seed(2)

    def optimizer(self, **more: Any) -> AltSDP:
        return AltSDP(copy_groups(self.groups), lr=RATES[0], **self.settings, **more)

    def gradients(self, layout: torch.memory_format = torch.preserve_format) -> list[list[Tensor]]:
        """Random gradients of every layer, in the network's type and memory layout or in another one."""
        fresh = []
        for group in self.groups:
            fresh.append([])
            for parameter in group["params"]:
                values = 0.1 * torch.randn(parameter.shape, generator=self.generator, dtype=torch.float64)
                parameter.grad = torch.empty_like(parameter, memory_format=layout).copy_(values)
                fresh[-1].append(parameter.grad)
        return fresh

    def run(self, optimizer: AltSDP, steps: Sequence[int] = range(STEPS), **more: Any) -> None:
        for n in steps:
            for group in optimizer.param_groups:
                group["lr"] = RATES[n]
            for reference, gradients in zip(self.references, self.gradients(**more), strict=True):
                reference.step(gradients, RATES[n])
            optimizer.step()

    def check(self, tolerance: float = 1e-12) -> None:
        layers = zip(self.groups, self.references, strict=True)
        pairs = [(p, w) for group, reference in layers for p, w in zip(group["params"], reference.w, strict=True)]
        for parameter, expected in pairs:
            found = parameter.detach().double().cpu().numpy()
            np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            if tolerance < 1e-9:
                assert ((found == 0) == (expected == 0)).all()
        zero = sum(reference.zero for reference in self.references[:-1])
        assert 0 < zero < sum(layer.groups for layer in sparsity(self.groups).layers)


# A learning rate that is halved and raised again: n must go on counting, γ must be the current one.
RATES = [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.2, 0.2, 0.025]


def scale_for(target: float, settings: dict[str, Any]) -> float:
    """The c with which the threshold of these steps adds up to `target`."""
    mu, total = settings["mu"], 0.0
    for n, lr in enumerate(RATES, start=1):
        rate = lr / (1 - settings["momentum"])
        dual = rate ** (mu + 0.5) * (n**mu - ((n - 1) ** mu if n > 1 else 0))
        total += dual if settings["mode"] == "dual" else math.sqrt(rate) * (n * rate) ** mu
    return target / total


def copy_groups(groups: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parameter groups of the same parameters: torch's optimisers keep and change the dictionaries they are given."""
    return [dict(group) for group in groups]


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
    monkeypatch.setattr(_blocks, "SLAB", slab)
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
    monkeypatch.setattr(_blocks, "SLAB", slab)
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


def network(dtype: torch.dtype = torch.float32) -> tuple[nn.Module, Tensor, Tensor]:
    torch.manual_seed(3)
    model = nn.Sequential(
        nn.Conv2d(2, 5, 3), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten(), nn.Linear(80, 6), nn.ReLU(), nn.Linear(6, 4)
    )
    return model.to(dtype), torch.randn(12, 2, 6, 6, dtype=dtype), torch.arange(12) % 4


def descend(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor, steps: int) -> list[float]:
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        losses.append(loss.item())
        optimizer.step()
    return losses


def weights_of(model: nn.Module) -> list[Tensor]:
    return [parameter.detach().clone() for parameter in model.parameters()]


def assert_same_bits(first: nn.Module, second: nn.Module) -> None:
    for one, other in zip(first.state_dict().values(), second.state_dict().values(), strict=True):
        assert torch.equal(one, other)


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


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_state_dict_through_a_file_continues_to_the_bit(mode: str, momentum: float) -> None:
    settings = {"lr": 0.05, "c": 0.02, "mode": mode, "momentum": momentum, "weight_decay": 0.01}
    model, x, y = network()
    optimizer = AltSDP(partition(model), **settings)  # type: ignore[arg-type]
    descend(model, optimizer, x, y, 5)
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    descend(model, optimizer, x, y, 5)

    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again, _, _ = network()
    again.load_state_dict(saved["model"])
    other = AltSDP(partition(again))  # every setting comes from the file
    other.load_state_dict(saved["optimizer"])
    descend(again, other, x, y, 5)
    assert_same_bits(model, again)
    assert other.param_groups[0]["step"] == 10
    assert other.param_groups[0]["threshold"] == optimizer.param_groups[0]["threshold"] > 0


def test_loading_a_state_again_rewinds_the_optimizer_in_use() -> None:
    model, x, y = network()
    optimizer = AltSDP(partition(model), lr=0.05, c=0.02, mode="dual", momentum=0.9)
    descend(model, optimizer, x, y, 3)
    weights, state = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    descend(model, optimizer, x, y, 4)
    first = weights_of(model)
    model.load_state_dict(weights)
    optimizer.load_state_dict(state)
    descend(model, optimizer, x, y, 4)
    assert all(torch.equal(one, other) for one, other in zip(first, weights_of(model), strict=True))


@pytest.mark.parametrize("mode", MODES)
def test_copies_of_model_and_optimizer_go_on_independently(mode: str) -> None:
    model, x, y = network()
    optimizer = AltSDP(partition(model), lr=0.05, c=0.02, mode=mode, momentum=0.9)  # type: ignore[arg-type]
    descend(model, optimizer, x, y, 3)
    twin, twin_optimizer = copy.deepcopy((model, optimizer))
    descend(model, optimizer, x, y, 3)
    descend(twin, twin_optimizer, x, y, 3)
    assert_same_bits(model, twin)


def test_torch_schedulers_set_the_rate() -> None:
    """The threshold follows the rate of the scheduler, and n is not reset by it."""
    model, x, y = network()
    optimizer = AltSDP(partition(model), lr=0.2, c=0.01, mu=0.5)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    expected = 0.0
    for n in range(1, 7):
        rate = 0.2 * 0.5 ** ((n - 1) // 2)
        expected += 0.01 * math.sqrt(rate) * math.sqrt(n * rate)
        descend(model, optimizer, x, y, 1)
        scheduler.step()
    for group in optimizer.param_groups:
        assert group["lr"] == pytest.approx(0.025)
        assert group["threshold"] == pytest.approx(expected)


def test_one_cycle_scheduler_changes_rate_and_momentum() -> None:
    model, x, y = network()
    optimizer = AltSDP(partition(model), lr=0.01, c=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=8)
    seen, expected = set(), 0.0
    for n in range(1, 9):
        lr, beta = optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["momentum"]
        rate = lr / (1 - beta)
        expected += 0.01 * math.sqrt(rate) * (n * rate) ** 0.51
        seen.add((lr, beta))
        descend(model, optimizer, x, y, 1)
        if n < 8:
            scheduler.step()
    assert len(seen) == 8
    assert optimizer.param_groups[0]["threshold"] == pytest.approx(expected)


def test_momentum_may_be_switched_on_and_off() -> None:
    weight = nn.Parameter(torch.tensor([[1.0, 1.0]]))
    optimizer = AltSDP([weight], lr=0.1, c=1e-9)
    for momentum, moved in ((0.0, 0.1), (0.5, 0.1), (0.5, 0.15), (0.0, 0.1)):
        before = float(weight.detach()[0, 0])
        optimizer.param_groups[0]["momentum"] = momentum
        weight.grad = torch.ones_like(weight)
        optimizer.step()
        assert before - float(weight.detach()[0, 0]) == pytest.approx(moved, abs=1e-6)


def test_closure_is_called_once_with_gradients_and_its_loss_returned() -> None:
    model, x, y = network()
    twin = copy.deepcopy(model)
    optimizer = AltSDP(partition(model), lr=0.05, c=0.02, momentum=0.9)
    calls = []

    def closure() -> float:
        optimizer.zero_grad()
        loss = cross_entropy(model(x), y)
        loss.backward()
        calls.append(loss.item())
        return loss.item()

    returned = [optimizer.step(closure) for _ in range(3)]
    assert returned == calls
    assert returned == descend(twin, AltSDP(partition(twin), lr=0.05, c=0.02, momentum=0.9), x, y, 3)
    assert_same_bits(model, twin)


def test_parameter_group_added_later_starts_at_its_own_first_step() -> None:
    first, second = (nn.Parameter(torch.full((2, 2), 2.0)) for _ in range(2))
    optimizer = AltSDP([first], lr=0.1, c=0.1, mu=0.5)
    for parameter in (first, second):
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    optimizer.add_param_group({"params": [second], "c": 0.3, "structure": "element"})
    optimizer.step()
    g = [0.1 * math.sqrt(0.1) * math.sqrt(0.1 * n) for n in (1, 2)]
    row_norm = math.sqrt(8) - g[0] - g[1]
    torch.testing.assert_close(first.detach(), torch.full((2, 2), row_norm / math.sqrt(2)))
    torch.testing.assert_close(second.detach(), torch.full((2, 2), 2 - 0.3 * math.sqrt(0.1) * math.sqrt(0.1)))
    assert [group["step"] for group in optimizer.param_groups] == [2, 1]


@pytest.mark.parametrize("mode", MODES)
def test_foreach_changes_nothing_but_the_grouping_of_the_work(mode: str) -> None:
    results = []
    for foreach in (None, False, True):
        case = Case(mode=mode, momentum=0.9, weight_decay=0.1)
        case.run(case.optimizer(foreach=foreach))
        case.check()
        results.append(weights_of(case.model))
    for one, other, third in zip(*results, strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, third)


def test_frozen_parameters_are_left_alone_and_may_be_thawed() -> None:
    model, x, y = network()
    optimizer = AltSDP(partition(model), lr=0.05, c=0.05, momentum=0.9)
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    for parameter in model[1].parameters():
        parameter.requires_grad_(False)
    frozen, moving = model[0].weight.detach().clone(), model[4].weight.detach().clone()
    descend(model, optimizer, x, y, 2)
    assert torch.equal(model[0].weight, frozen)
    assert not torch.equal(model[4].weight, moving)
    for parameter in model.parameters():
        parameter.requires_grad_(True)
    descend(model, optimizer, x, y, 2)
    assert not torch.equal(model[0].weight, frozen)


def test_layer_with_some_parameters_frozen_is_refused() -> None:
    model, x, y = network()
    model[4].bias.requires_grad_(False)
    with pytest.raises(ValueError, match=r"layer '4'.*bias=False"):
        descend(model, AltSDP(partition(model)), x, y, 1)


def test_sparse_gradients_are_refused() -> None:
    embedding = nn.Embedding(5, 3, sparse=True)
    embedding(torch.tensor([1, 2])).sum().backward()
    with pytest.raises(ValueError, match="sparse=False"):
        AltSDP(embedding.parameters()).step()


@pytest.mark.parametrize("field", ["lr", "c", "mu", "weight_decay", "momentum", "floor"])
@pytest.mark.parametrize("value", [-0.5, math.nan, math.inf, -math.inf])
def test_settings_out_of_range_are_refused_by_name_and_value(field: str, value: float) -> None:
    weight = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=rf"{field}={value}"):
        AltSDP([weight], **{field: value})
    with pytest.raises(ValueError, match=rf"{field}={value}"):
        AltSDP([{"params": [weight], field: value}])


@pytest.mark.parametrize(("field", "value"), [("momentum", 1.0), ("momentum", 1.5), ("floor", 1.01)])
def test_shares_of_one_and_more_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=rf"{field}={value}"):
        AltSDP([nn.Parameter(torch.zeros(2, 2))], **{field: value})  # type: ignore[arg-type]


def test_unknown_mode_and_structure_are_refused_with_the_known_ones() -> None:
    weight = nn.Parameter(torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"mode='proximal'.*prox, dual, cumulative"):
        AltSDP([weight], mode="proximal")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"structure='channel'.*filter, kernel, vector, element"):
        AltSDP([{"params": [weight], "structure": "channel"}])
    optimizer = AltSDP([weight])
    with pytest.raises(ValueError, match=r"c=-1"):
        optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2, 2))], "c": -1})
