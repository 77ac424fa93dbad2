"""A compact network has the outputs of the network it was made from, and no zero groups."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from tests.training.compaction.networks import SMALL, difference, with_zero_groups
from valleyscope import NotCompactable, build_model, compact, load_dataset, partition, sparsity, train
from valleyscope.training.models.registry import describe_models


@pytest.mark.parametrize("bias", [True, False], ids=["whole groups", "weights only"])
@pytest.mark.parametrize("name", list(describe_models()))
def test_outputs_of_named_models_stay(name: str, bias: bool) -> None:
    model = build_model(name, seed=1, **SMALL.get(name, {}))
    with_zero_groups(model, bias=bias)
    shape = describe_models()[name].input_shape
    found = compact(model, torch.zeros(1, *shape))
    assert difference(model, found.model, torch.randn(3, *shape)) < 1e-5
    assert found.report.after.parameters < 0.6 * found.report.before.parameters
    assert not found.report.left_whole


@pytest.mark.parametrize(("name", "share"), [("resnet18", 0.35), ("vgg11_bn", 0.3)])
def test_outputs_of_torchvision_models_stay(name: str, share: float) -> None:
    from torchvision import models

    features = {"resnet18": lambda: models.resnet18(num_classes=10), "vgg11_bn": _vgg11_bn}
    model = with_zero_groups(features[name]())
    found = compact(model, torch.zeros(1, 3, 64, 64))
    assert difference(model, found.model, torch.randn(2, 3, 64, 64)) < 1e-5
    assert found.report.after.multiply_adds < share * found.report.before.multiply_adds


def _vgg11_bn() -> nn.Module:
    """Torchvision's layers with a small classifier: its own has 120 million weights."""
    from torchvision import models

    with torch.device("meta"):
        model = models.vgg11_bn(num_classes=10)
    model.classifier = nn.Sequential(nn.Linear(512 * 49, 64), nn.ReLU(True), nn.Dropout(), nn.Linear(64, 10))
    model.features = models.vgg.make_layers(models.vgg.cfgs["A"], batch_norm=True)
    return model


def test_a_network_trained_by_altsdp_is_made_compact_on_real_images() -> None:
    data = load_dataset("digits")
    model = build_model("cnn", data, seed=0)
    train(model, data, optimizer="altsdp", sparsity=0.5, epochs=8)
    zero = sparsity(partition(model))
    assert zero.groups >= 0.5
    found = compact(model, data.x_test[:1])
    assert difference(model.eval(), found.model, data.x_test) < 1e-5
    widths = {layer.name: layer.outputs for layer in found.report.layers}
    for layer in zero.layers:
        assert widths[layer.name] == (layer.groups, layer.groups - layer.zero_groups)


def test_tied_residuals_leave_plain_additions_within_a_stage() -> None:
    tied, loose = (
        with_zero_groups(build_model("resnet56", depth=14, width=8, input_shape=(3, 16, 16), seed=0), tie=tie)
        for tie in (True, False)
    )
    functions = []
    for model in (tied, loose):
        found = compact(model, torch.zeros(1, 3, 16, 16))
        assert difference(model, found.model, torch.randn(2, 3, 16, 16)) < 1e-5
        functions.append([node.target for node in found.model.graph.nodes].count(torch.index_add))
    assert functions[0] <= 2 < functions[1]  # one where each of two stages begins


def test_counts_are_those_of_torch() -> None:
    model = with_zero_groups(build_model("resnet56", depth=8, width=8, input_shape=(3, 8, 8), seed=0))
    found = compact(model, torch.zeros(2, 3, 8, 8))
    for network, size in ((model, found.report.before), (found.model, found.report.after)):
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            network(torch.zeros(1, 3, 8, 8))
        assert size.multiply_adds == counter.get_total_flops() // 2
        assert size.parameters == sum(parameter.numel() for parameter in network.parameters())


def test_a_network_without_zeros_stays_as_it_is() -> None:
    model = build_model("lenet", seed=0).eval()
    found = compact(model, torch.zeros(1, 1, 28, 28))
    assert found.report.before.parameters == found.report.after.parameters
    assert not found.report.is_smaller
    x = torch.randn(2, 1, 28, 28)
    assert torch.equal(model(x), found.model(x))


def test_a_dead_block_vanishes_and_a_dead_network_is_a_constant() -> None:
    model = with_zero_groups(build_model("resnet56", depth=8, width=4, input_shape=(3, 8, 8), seed=0), share=0.0)
    with torch.no_grad():
        model.get_submodule("block1_1.conv1").weight.zero_()
        model.get_submodule("block1_1.norm1").bias.fill_(-1.0)  # the ReLU makes it zero
        model.get_submodule("block1_1.norm2").weight.zero_()
    found = compact(model, torch.zeros(1, 3, 8, 8))
    assert not any(name.startswith("block1_1") for name, _ in found.model.named_parameters())
    assert difference(model, found.model, torch.randn(2, 3, 8, 8)) < 1e-5
    with torch.no_grad():
        model.get_submodule("linear").weight.zero_()
    found = compact(model, torch.zeros(1, 3, 8, 8))
    assert found.report.after.parameters == 0
    assert difference(model, found.model, torch.randn(5, 3, 8, 8)) < 1e-5


def test_a_constant_under_zero_padding_becomes_a_map() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 3, padding=1), nn.Flatten())
    with torch.no_grad():
        model[0].weight[1:3] = 0
        model[0].bias.fill_(1.0)
    found = compact(model, torch.zeros(1, 1, 6, 6))
    assert found.report.fixed_size == ("2",)
    assert dict(found.model.named_buffers())["2_constant"].shape == (1, 2, 6, 6)
    assert difference(model, found.model, torch.randn(3, 1, 6, 6)) < 1e-5


class _Shared(nn.Module):
    """One layer twice, in-place functions, a reshape by size, products, and depthwise and grouped convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.twice = nn.Conv2d(8, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.grouped = nn.Conv2d(8, 8, 1, groups=2)
        self.gate = nn.Conv2d(8, 8, 1)
        self.slope = nn.PReLU(8)
        self.linear = nn.Linear(24 * 4 * 4, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x), inplace=True)
        y = self.slope(self.twice(self.twice(x)))
        y += x
        z = self.depthwise(y) * torch.sigmoid(self.gate(y.mean((2, 3), keepdim=True)))
        w = torch.cat([2 - y, z, self.grouped(z).relu_()], 1)
        return self.linear(F.max_pool2d(w, 2).view(x.size(0), -1))


@pytest.mark.parametrize("bias", [True, False])
def test_functions_shared_layers_and_grouped_convolutions(bias: bool) -> None:
    model = with_zero_groups(_Shared(), bias=bias, seed=3)
    found = compact(model, torch.zeros(1, 3, 8, 8))
    assert difference(model, found.model, torch.randn(3, 3, 8, 8)) < 1e-5
    assert found.report.left_whole == {"grouped": "grouped convolution (2 groups of 4 channels)"}
    widths = {layer.name: layer.outputs for layer in found.report.layers}
    assert widths["depthwise"][1] < widths["depthwise"][0]
    assert widths["grouped"] == (8, 8)


class _Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 2), _Branch())

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.inner(x)
        return result


class _Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x


def test_a_network_that_cannot_be_traced_is_refused_by_layer_and_line() -> None:
    with pytest.raises(NotCompactable, match=r"_Branches cannot be traced: layer 'inner\.1'.*if x\.sum\(\) > 0"):
        compact(_Branches(), torch.zeros(1, 2))


def test_the_old_network_is_not_changed() -> None:
    model = with_zero_groups(_Shared()).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compact(model, torch.zeros(1, 3, 8, 8))
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("activation", [nn.LeakyReLU(0.1), nn.ReLU6(), nn.SiLU(), nn.Hardswish(), nn.PReLU(), nn.ELU()])
def test_activations_keep_constants_of_zero_filters(activation: nn.Module) -> None:
    layers = [nn.Conv2d(1, 6, 3), activation, nn.AvgPool2d(2), nn.Flatten(), nn.Linear(24, 3)]
    model = with_zero_groups(nn.Sequential(*layers), bias=False)
    found = compact(model, torch.zeros(1, 1, 6, 6))
    assert difference(model, found.model, torch.randn(2, 1, 6, 6)) < 1e-5
    assert not found.report.left_whole
    assert found.report.layers[0].outputs[1] < 6
