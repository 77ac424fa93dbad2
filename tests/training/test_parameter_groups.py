"""Partitions: what a group is, what belongs to it, and what zeros are counted as."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from torch import Tensor, nn

from valleyscope.training.altsdp import AltSDP
from valleyscope.training.models import build_model
from valleyscope.training.parameter_groups import Assumed, group_norms, partition
from valleyscope.training.pruning_forecast import forecast_loop
from valleyscope.training.sdp import sdp_step
from valleyscope.training.zero_groups import angle, sparsity


def small() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 5), nn.ReLU(), nn.Linear(5, 2)
    )


@pytest.mark.parametrize("structure", ["filter", "kernel", "vector", "element"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["cnn", "mlp", "vgg16_bn", "resnet56"])
def test_every_parameter_is_in_exactly_one_group(name: str, structure: str, bias: bool) -> None:
    options = {"vgg16_bn": {"width": 4}, "resnet56": {"depth": 8, "width": 4}}.get(name, {})
    model = build_model(name, **options)
    members = [parameter for group in partition(model, structure, bias) for parameter in group["params"]]
    assert len(members) == len(set(members)) == len(list(model.parameters()))


def test_a_filter_has_its_bias_and_the_batch_norm_that_follows() -> None:
    model = small()
    conv, linear, rest = partition(model)
    assert [parameter is expected for parameter, expected in zip(
        conv["params"], (model[0].weight, model[0].bias, model[1].weight, model[1].bias), strict=True
    )] == [True] * 4  # fmt: skip
    assert linear["params"] == [model[4].weight, model[4].bias]
    assert (rest["name"], rest["structure"]) == ("rest", None)
    assert len(rest["params"]) == 2


def test_norms_are_those_of_weight_bias_and_batch_norm_together() -> None:
    model = small()
    torch.nn.init.normal_(model[1].bias)
    group = partition(model)[0]
    for index, norm in enumerate(group_norms(group)):
        flat = torch.cat([parameter[index].flatten() for parameter in group["params"]])
        assert float(norm) == pytest.approx(float(flat.detach().norm()), rel=1e-6)


@pytest.mark.parametrize(("structure", "groups"), [("filter", 4), ("kernel", 12), ("vector", 36), ("element", 108)])
def test_levels_have_their_number_of_groups(structure: str, groups: int) -> None:
    layer = partition(small(), structure, bias=False)[0]
    assert group_norms(layer).numel() == groups


@pytest.mark.parametrize("structure", ["kernel", "vector"])
def test_a_linear_layer_keeps_its_rows_where_there_are_no_kernels(structure: str) -> None:
    layers = partition(small(), structure)
    assert layers[1]["structure"] == "filter"
    assert group_norms(layers[1]).numel() == 5


def test_without_bias_the_others_are_in_the_rest() -> None:
    groups = partition(small(), bias=False)
    assert [len(group["params"]) for group in groups] == [1, 1, 6]


def test_the_output_layer_is_left_out_unless_asked_for() -> None:
    assert [group["name"] for group in partition(small())] == ["0", "4", "rest"]
    assert [group["name"] for group in partition(small(), skip_output=False)] == ["0", "4", "6"]


def test_a_batch_norm_on_a_sum_belongs_to_no_filter() -> None:
    model = build_model("wrn28x10", depth=10, widen=1)
    assigned = {id(parameter) for group in partition(model)[:-1] for parameter in group["params"]}
    norms = {name for name, parameter in model.named_parameters() if "norm" in name and id(parameter) in assigned}
    after_a_convolution = {f"block{stage}_1.norm2" for stage in (1, 2, 3)} | {"block1_1.norm1"}
    assert norms == {f"{name}.{part}" for name in after_a_convolution for part in ("weight", "bias")}


def test_a_network_that_cannot_be_traced_is_partitioned_by_order() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
            self.out = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            while x.sum() > 1e3:
                x = x / 2
            return self.out(self.body(x))

    body, rest = partition(Loop())
    assert len(body["params"]) == 4
    assert len(rest["params"]) == 2


def test_an_unknown_structure_is_refused() -> None:
    with pytest.raises(ValueError, match=r"structure='row'.*filter"):
        partition(small(), "row")  # type: ignore[arg-type]


def test_zeros_are_counted_by_parameter_group_and_layer() -> None:
    model = small()
    with torch.no_grad():
        model[0].weight[:2] = 0
        model[0].bias[:2] = 0
        model[1].weight[:2] = 0
        model[1].bias[:] = 0
        model[4].weight[0] = 0  # its bias is not zero: the row still speaks
    report = sparsity(partition(model))
    total = sum(parameter.numel() for parameter in model.parameters())
    zeros = sum(int((parameter == 0).sum()) for parameter in model.parameters())
    assert report.parameters == float(report) == zeros / total
    assert report.groups == 2 / 9
    assert [(layer.groups, layer.zero_groups) for layer in report.layers] == [(4, 2), (5, 0)]
    assert sparsity(model) == report


def test_the_angle_is_that_between_w_and_its_normalised_groups() -> None:
    model = small()
    groups = partition(model)
    flat, unit = [], []
    for group in groups[:-1]:
        for index in range(len(group["params"][0])):
            vector = torch.cat([parameter[index].detach().flatten().double() for parameter in group["params"]])
            flat.append(vector)
            unit.append(vector / vector.norm())
    w, e = torch.cat(flat), torch.cat(unit)
    expected = math.degrees(math.acos(float(w @ e / (w.norm() * e.norm()))))
    assert angle(groups) == pytest.approx(expected, abs=1e-4)


def test_the_angle_is_zero_where_all_groups_have_one_norm_and_undefined_where_all_are_zero() -> None:
    layer = nn.Linear(2, 3, bias=False)
    layer.weight.data = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    groups = partition(layer, skip_output=False)
    assert angle(groups) == pytest.approx(0, abs=1e-2)
    layer.weight.data.zero_()
    assert math.isnan(angle(groups))


@settings(max_examples=60, deadline=None)
@given(
    weights=some.lists(some.floats(-3, 3), min_size=6, max_size=6),
    factors=some.lists(some.floats(-2, 2), min_size=3, max_size=3),
    strength=some.floats(0, 2),
    direction=some.integers(0, 2**31),
)
def test_the_sdp_step_minimises_its_objective(
    weights: list[float], factors: list[float], strength: float, direction: int
) -> None:
    """Theorem 1: no other point has a lower ½||w* - w||² + λ Σ s_i ||w_i||, for factors of any sign."""
    star = torch.tensor(weights, dtype=torch.float64).view(3, 2)
    s = torch.tensor(factors, dtype=torch.float64)
    if (star.norm(dim=1) < 1e-3).any():
        return  # at ||w*_i|| = 0 and s_i < 0 the direction of growth is arbitrary
    layer = nn.Linear(2, 3, bias=False).double()
    layer.weight.data = star

    def objective(w: Tensor) -> float:
        return float(0.5 * (star - w).square().sum() + strength * (s * w.norm(dim=1)).sum())

    (best,) = sdp_step({"params": [layer.weight], "structure": "filter"}, strength, s)
    generator = torch.Generator().manual_seed(direction)
    for size in (1e-4, 1e-2, 1.0, 5.0):
        other = best + size * torch.randn(3, 2, generator=generator, dtype=torch.float64)
        assert objective(other) >= objective(best) - 1e-9


def test_the_sdp_step_grows_groups_with_negative_factors_and_leaves_the_network_alone() -> None:
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    (group,) = partition(layer, skip_output=False)
    weight, bias = sdp_step(group, 0.1, [-1.0, 1e9])
    assert weight[0].norm() > before[0].norm()
    assert torch.equal(weight[1], torch.zeros(2))
    assert bias[1] == 0
    assert torch.equal(layer.weight, before)


def test_the_sdp_step_wants_a_factor_for_each_group() -> None:
    (group,) = partition(nn.Linear(2, 3), skip_output=False)
    with pytest.raises(ValueError, match="2 entries for 3 groups"):
        sdp_step(group, 0.1, [1.0, 2.0])
    with pytest.raises(ValueError, match="strength=-1"):
        sdp_step(group, -1, [1.0, 2.0, 3.0])


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.auxiliary = nn.Linear(4, 2)
        self.trunk = nn.Linear(3, 4)
        self.head = nn.Linear(4, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        inner = self.trunk(x).relu()
        return self.head(inner).softmax(1), self.auxiliary(inner)


class Untraceable(TwoHeads):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return super().forward(x if x.sum() > 0 else -x)


def test_all_heads_are_outputs_and_an_untraced_network_says_what_is_assumed() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [group["name"] for group in partition(TwoHeads())] == ["trunk", "rest"]
        named = partition(Untraceable(), output=["head", "auxiliary"])
        assert [group["name"] for group in named] == ["trunk", "rest"]
        assert [group["name"] for group in partition(TwoHeads(), output="trunk")] == ["auxiliary", "head", "rest"]
    with pytest.warns(Assumed, match=r"Untraceable cannot be traced.*'head', is the output.*output=\[\.\.\.\]"):
        assert [group["name"] for group in partition(Untraceable())] == ["auxiliary", "trunk", "rest"]
    with pytest.raises(ValueError, match="output='heads' is no convolution or linear layer: use one of auxiliary"):
        partition(TwoHeads(), output="heads")


@pytest.mark.parametrize("mode", ["prox", "dual"])
def test_the_forecast_of_a_loop_is_the_threshold_that_it_reaches(mode: str) -> None:
    """With gradients of four batches a step, and momentum that is cycled with the rate."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

    def schedule(optimizer: torch.optim.Optimizer) -> torch.optim.lr_scheduler.LRScheduler:
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=8)

    optimizer = AltSDP(partition(model), lr=0.05, c=1e-3, mu=0.6, mode=mode, momentum=0.9)  # type: ignore[arg-type]
    expected = forecast_loop(optimizer, batches=28, accumulation=4, scheduler=schedule)
    scheduler = schedule(optimizer)
    for batch in range(28):
        model(torch.ones(2, 3)).sum().backward()
        if batch % 4 == 3:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    assert optimizer.param_groups[0]["threshold"] == pytest.approx(expected.reach)
    with pytest.raises(ValueError, match="accumulation=0"):
        forecast_loop(optimizer, batches=4, accumulation=0)
