"""Networks that were altered from outside, by hooks or by other forward passes: what they compute is what counts."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

from tests.landscape.reference import COEFFICIENTS, basis_around, plain, samples
from valleyscope.landscape import Evaluator, evaluate

SHAPE = (3, 12, 12)


def network(norm: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    between = [nn.BatchNorm2d(64)] if norm else []
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, padding=1),
        *between,
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 3),
    ).eval()


def standardised(self: nn.Conv2d, x: Tensor) -> Tensor:
    """Weight standardisation, by patching."""
    weight = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
    return F.conv2d(x, weight / weight.std((1, 2, 3), keepdim=True), self.bias, padding=1)


def patched(place: int) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        model = network()
        model[place].forward = types.MethodType(standardised, model[place])
        return model

    return build


class Residual(nn.Module):
    """Its second layer is cut out by a hook, so ReLU gets what the sum still needs."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.second.register_forward_hook(lambda *given: given[1][0])
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        return self.last((F.relu(self.second(h)) + h).mean((2, 3)))


@pytest.fixture
def doubled() -> Iterator[None]:
    """A hook of all modules, which doubles the output of convolutions."""
    hook = register_module_forward_hook(lambda module, _, output: 2 * output if isinstance(module, nn.Conv2d) else None)
    yield
    hook.remove()


def assert_as_it_computes(model: nn.Module) -> None:
    data = {"train": samples(SHAPE, 21, 3)}
    basis = basis_around(model)
    found = Evaluator(model, data).at(basis, COEFFICIENTS)["train"].loss
    assert found == pytest.approx(plain(model, basis, data)["train"][:, 0], rel=2e-5)


@pytest.mark.parametrize("build", [patched(0), patched(2), Residual])
def test_a_patched_forward_pass_is_what_counts(build: Callable[[], nn.Module]) -> None:
    assert_as_it_computes(build())


def test_a_hook_of_all_modules_is_heard(doubled: None) -> None:  # noqa: ARG001
    assert_as_it_computes(network())


def test_a_patched_batch_norm_is_what_counts() -> None:
    model = network(norm=True)
    model[1].forward = types.MethodType(lambda self, x: 3 * nn.BatchNorm2d.forward(self, x), model[1])
    assert_as_it_computes(model)


def test_the_users_samples_are_not_written_into_behind_a_hook() -> None:
    model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    model[0].register_forward_hook(lambda *given: given[1][0])
    x, y = samples((16,), 20, 3)
    before = x.clone()
    evaluate(model, model.state_dict(), (x, y))
    assert torch.equal(x, before)


def test_splits_may_have_images_of_several_sizes() -> None:
    data = {"train": samples((3, 12, 12), 10, 3), "test": samples((3, 17, 9), 10, 3, seed=1)}
    for kernel in (3, 5):
        model = network()
        model[2] = nn.Conv2d(64, 64, kernel, padding=1)
        basis = basis_around(model)
        found = Evaluator(model, data).at(basis, COEFFICIENTS)
        for split, expected in plain(model, basis, data).items():
            assert found[split].loss == pytest.approx(expected[:, 0], rel=1e-5)


def test_another_default_of_torch_changes_nothing() -> None:
    model, data = network(), {"train": samples(SHAPE, 9, 3)}
    expected = evaluate(model, model.state_dict(), data)["train"].loss
    torch.set_default_dtype(torch.float64)
    try:
        assert evaluate(model, model.state_dict(), data)["train"].loss == expected
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_last_block_is_never_a_single_sample() -> None:
    class Squeezed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Conv2d(3, 5, 12)

        def forward(self, x: Tensor) -> Tensor:
            output: Tensor = self.layer(x)
            return output.squeeze()

    model = Squeezed()
    for count in (2, 129, 257):
        x, y = samples(SHAPE, count, 5)
        expected = F.cross_entropy(model(x), y).item()
        assert evaluate(model, model.state_dict(), (x, y))["train"].loss == pytest.approx(expected, rel=1e-5)


class Scaled(nn.Module):
    """The input is changed by a weight, but only for more samples than a trial has."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.gain = nn.Parameter(torch.tensor(0.7))
        self.first = nn.Conv2d(3, 8, 3)
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] > 2:
            x = x * self.gain * 3
        return self.last(self.first(x).mean((2, 3)))


def test_maps_of_the_first_layer_are_those_of_its_input() -> None:
    assert_as_it_computes(Scaled())
