"""Networks in another order of their units are found to be the same."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from safetensors.torch import save_file
from torch import Tensor, nn

from tests.landscape.alignment.random_networks import Network, networks
from tests.landscape.alignment.test_symmetries import SLOW, permuted
from valleyscope import NotAligned, align, along, barrier, build_model, flatten, line
from valleyscope.landscape.alignment.align import Aligner
from valleyscope.landscape.alignment.symmetries import symmetries
from valleyscope.landscape.network.copying import copied

NAMED = [
    ("mlp", {"hidden": [40, 30]}, (1, 8, 8)),
    ("cnn", {"channels": [6, 8], "hidden": 20}, (1, 8, 8)),
    ("lenet", {}, (1, 28, 28)),
    ("vgg16", {"width": 4}, (3, 32, 32)),
    ("vgg16_bn", {"width": 4}, (3, 32, 32)),
    ("resnet56", {"depth": 14, "width": 4}, (3, 16, 16)),
    ("wrn28x10", {"depth": 10, "widen": 1}, (3, 16, 16)),
]
FULL = [
    ("vgg16", {}, (3, 32, 32)),
    ("vgg16_bn", {}, (3, 32, 32)),
    ("resnet56", {}, (3, 32, 32)),
    ("wrn28x10", {}, (3, 32, 32)),
]


def trained_like(name: str, options: dict[str, object], shape: tuple[int, ...]) -> nn.Module:
    """A named network whose BatchNorm layers and biases are not all alike."""
    torch.manual_seed(0)
    model = build_model(name, input_shape=shape, classes=5, **options)
    with torch.no_grad():
        for tensor_name, tensor in model.state_dict().items():
            if tensor.dim() == 1 and tensor.is_floating_point():
                tensor.uniform_(0.5, 1.5) if tensor_name.endswith("running_var") else tensor.add_(0.3 * torch.randn(()))
                tensor += 0.2 * torch.rand(tensor.shape)
    return model


def data_for(shape: tuple[int, ...], samples: int = 20) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(samples, *shape, generator=generator), torch.arange(samples) % 5


def learned(model: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Data that the network fits: its own predictions, which its last layer makes different and sure."""
    last = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    with torch.no_grad():
        logits = copied(model).train()(x)  # statistics of this batch, as they are recomputed on a line
        scale = 20 / logits.std(dim=0).clamp_min(1e-3)
        last.weight *= scale[:, None]
        last.bias.copy_((last.bias - logits.mean(dim=0)) * scale)
        return x, copied(model).train()(x).argmax(1)


def copy_in_another_order(model: nn.Module, shape: tuple[int, ...]) -> dict[str, Tensor]:
    found = symmetries(model, (data_for(shape, 3)[0],))
    return permuted(found, {name: value.clone() for name, value in model.state_dict().items()})


def check_found_again(name: str, options: dict[str, object], shape: tuple[int, ...]) -> None:
    model = trained_like(name, options, shape)
    data = learned(model, data_for(shape)[0])
    own, other = model.state_dict(), copy_in_another_order(model, shape)

    def barrier_to(state: dict[str, Tensor]) -> float:
        path = line(flatten(model, own), flatten(model, state))
        return barrier(along(model, path, {"train": data}, points=5, batch_norm="population")["train"].loss)

    assert barrier_to(other) > 0
    for given_data in (None, data):
        found = align(model, other, to=own, data=given_data)
        assert all(torch.equal(found[key], value) for key, value in own.items())
    assert barrier_to(found) == 0


@pytest.mark.parametrize(("name", "options", "shape"), NAMED, ids=[name for name, _, _ in NAMED])
def test_a_permuted_copy_of_a_named_network_is_found_again(
    name: str, options: dict[str, object], shape: tuple[int, ...]
) -> None:
    check_found_again(name, options, shape)


@pytest.mark.drill
@pytest.mark.parametrize(("name", "options", "shape"), FULL, ids=[name for name, _, _ in FULL])
def test_a_permuted_copy_of_a_full_network_is_found_again(
    name: str, options: dict[str, object], shape: tuple[int, ...]
) -> None:
    check_found_again(name, options, shape)


@pytest.mark.drill
@pytest.mark.parametrize("name", ["resnet18", "resnet50", "resnext50_32x4d", "vgg11_bn", "densenet121", "mobilenet_v2"])
def test_a_permuted_copy_of_a_torchvision_network_is_found_again(name: str) -> None:
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)(weights=None).eval()
    shape = (3, 32, 32) if name.startswith("vgg") else (3, 64, 64)
    other = copy_in_another_order(model, shape)
    found = align(model, other, to=model, example=data_for(shape, 3)[0])
    assert all(torch.equal(found[key], value) for key, value in model.state_dict().items())


@settings(max_examples=20, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(networks())
def test_aligning_a_random_network_keeps_what_it_computes_or_is_refused(network: Network) -> None:
    reference = Network(network.kinds, network.head).eval()
    x = torch.randn(6, 2, 4, 4)
    before = network(x)
    try:
        found = align(network, network, to=reference, example=x)
    except NotAligned as error:
        assert "Network" in str(error)  # noqa: PT017 - a refusal is one of two good ends
        return
    assert any(not torch.equal(found[name], value) for name, value in network.state_dict().items())
    network.load_state_dict(found)
    torch.testing.assert_close(network(x), before, rtol=1e-4, atol=1e-4)


def test_one_hidden_layer_gets_the_best_of_all_orders() -> None:
    torch.manual_seed(0)
    a, b = (nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2)) for _ in "ab")

    def distance(state: dict[str, Tensor]) -> float:
        return float((flatten(a, state) - flatten(a)).norm())

    def ordered(order: tuple[int, ...]) -> dict[str, Tensor]:
        state, rows = dict(b.state_dict()), list(order)
        return state | {
            "0.weight": state["0.weight"][rows],
            "0.bias": state["0.bias"][rows],
            "2.weight": state["2.weight"][:, rows],
        }

    best = min(distance(ordered(order)) for order in permutations(range(5)))
    assert distance(align(b, b, to=a)) == pytest.approx(best, rel=1e-6)


def test_two_hidden_layers_get_an_order_that_no_single_layer_can_better() -> None:
    torch.manual_seed(1)
    a, b = (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in "ab")
    found = align(b, b, to=a)
    groups = symmetries(b, (torch.randn(3, 3),))
    reached = float((flatten(a, found) - flatten(a)).norm())
    for group, order in product(groups.groups, permutations(range(4))):
        other = groups.permuted(found, {group.name: torch.tensor(order)})
        assert float((flatten(a, other) - flatten(a)).norm()) >= reached - 1e-6


def test_activations_find_units_whose_weights_have_another_scale() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    order = torch.tensor([3, 1, 5, 0, 2, 4])
    scale = torch.tensor([0.01, 10.0, 1.0, 50.0, 0.3, 2.0])
    other = {
        "0.weight": (model[0].weight * scale[:, None])[order],
        "0.bias": (model[0].bias * scale)[order],
        "2.weight": (model[2].weight / scale)[:, order],
        "2.bias": model[2].bias,
    }
    found = align(model, other, to=model, data=(torch.randn(200, 4), torch.zeros(200, dtype=torch.long)))
    torch.testing.assert_close(found["0.weight"], model[0].weight * scale[:, None])


def test_weights_come_in_any_form(tmp_path: Path) -> None:
    model = trained_like("mlp", {"hidden": [7]}, (1, 4, 4))
    own, other = model.state_dict(), copy_in_another_order(model, (1, 4, 4))
    save_file(other, tmp_path / "other.safetensors")
    for weights in (other, flatten(model, other), tmp_path / "other.safetensors"):
        found = align(model, weights, to=flatten(model), example=torch.randn(4, 1, 4, 4))
        assert all(torch.equal(found[key], value) for key, value in own.items())


def test_what_was_done_is_told() -> None:
    model = trained_like("mlp", {"hidden": [7]}, (1, 4, 4))
    found = Aligner(model, model).align(copy_in_another_order(model, (1, 4, 4)))
    assert (found.units, found.distance_after, found.left_alone) == (7, 0.0, ())
    assert found.distance_before > 0
    assert found.change < 1e-12
    assert found.moved > 0


class _Branching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(3, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = self.one(x)
        return self.two(h if h.sum() > 0 else -h)


def test_networks_and_options_that_do_not_fit_are_refused_by_name() -> None:
    mlp = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    wide = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    with pytest.raises(NotAligned, match="_Branching cannot be traced"):
        align(_Branching(), _Branching(), to=_Branching())
    with pytest.raises(ValueError, match=r"weights: parameter '0.weight' has shape \(5, 3\).*another architecture"):
        align(mlp, wide, to=mlp)
    with pytest.raises(ValueError, match=r"to: parameter '0.weight' has shape \(5, 3\)"):
        align(mlp, mlp, to=wide)
    with pytest.raises(ValueError, match="method is 'biases'; use weights or activations"):
        align(mlp, mlp, to=mlp, method="biases")
    with pytest.raises(ValueError, match="'activations' compares units on data"):
        align(mlp, mlp, to=mlp, method="activations")
    with pytest.raises(ValueError, match="no shape of its inputs is known to fit; give data, or example="):
        align(nn.Bilinear(2, 2, 3), nn.Bilinear(2, 2, 3), to=nn.Bilinear(2, 2, 3))
