"""The three ways to BatchNorm statistics at a point, and the memory of the default one."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from valleyscope.landscape import Evaluator, flatten


def network() -> nn.Module:
    torch.manual_seed(0)
    body = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(4 * 16, 5), nn.BatchNorm1d(5))


def data(count: int = 50, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return 1 + 2 * torch.randn(count, 1, 6, 6, generator=generator), torch.arange(count) % 5


def loss_at_itself(evaluator: Evaluator, model: nn.Module, split: str = "train") -> float:
    return float(evaluator.at(flatten(model).unsqueeze(0), [[1.0]])[split].loss[0])


def test_frozen_statistics_are_those_of_the_model() -> None:
    model = network()
    x, y = data()
    model.train()
    model(x)
    model.eval()
    with torch.no_grad():
        expected = float(cross_entropy(model.double()(x.double()), y))
    found = loss_at_itself(Evaluator(network_like(model), {"train": (x, y)}, batch_norm="frozen"), model.float())
    assert found == pytest.approx(expected, rel=1e-5)


def network_like(model: nn.Module) -> nn.Module:
    return copy.deepcopy(model).float()


def test_running_averages_are_those_of_one_pass_in_batches() -> None:
    model = network()
    train, test = data(), data(30, seed=1)
    expected = copy.deepcopy(model).eval()
    norms = [layer for layer in expected.modules() if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)]
    for norm in norms:
        norm.train()
    seen = 0
    with torch.no_grad():
        for batch in train[0].split(16):
            for norm in norms:
                norm.momentum = len(batch) / (seen + len(batch))
            expected(batch)
            seen += len(batch)
        for norm in norms:
            norm.eval()
        wanted = float(cross_entropy(expected(test[0]), test[1]))
    evaluator = Evaluator(model, {"train": train, "test": test}, batch_norm="running", statistics_batch=16)
    assert loss_at_itself(evaluator, model, "test") == pytest.approx(wanted, rel=1e-5)


def test_population_statistics_of_some_samples_are_those_of_one_batch_of_them() -> None:
    model = network()
    train, test = data(), data(30, seed=1)
    exact = copy.deepcopy(model).double().eval()
    norms = [layer for layer in exact.modules() if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d)]
    some, count = train[0][:20].double(), len(test[0])
    with torch.no_grad():
        for norm in norms:  # one after the other, each from inputs that the ones before have normalised
            norm.momentum = 1.0
            inputs: list[Tensor] = []
            hook = norm.register_forward_pre_hook(lambda _, args, kept=inputs: kept.append(args[0]))
            exact(some)
            hook.remove()
            axes = [0, *range(2, inputs[0].dim())]
            norm.running_mean, norm.running_var = inputs[0].mean(axes), inputs[0].var(axes, unbiased=False)
        wanted = float(cross_entropy(exact(test[0].double()), test[1]))
    evaluator = Evaluator(model, {"train": train, "test": test}, statistics_samples=20, block=count // 4)
    assert loss_at_itself(evaluator, model, "test") == pytest.approx(wanted, rel=1e-5)


def test_population_statistics_do_not_depend_on_the_block() -> None:
    model = network()
    losses = [loss_at_itself(Evaluator(model, {"train": data()}, block=block), model) for block in (1, 7, 50)]
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)


def test_with_little_memory_statistics_are_computed_layer_by_layer() -> None:
    model = network()
    at_once = loss_at_itself(Evaluator(model, {"train": data()}, memory_limit=10_000_000), model)
    by_layer = loss_at_itself(Evaluator(model, {"train": data()}, memory_limit=10_000), model)
    assert by_layer == pytest.approx(at_once, rel=1e-6)


def test_layers_without_averages_need_population_statistics() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.BatchNorm1d(5, track_running_stats=False))
    for way in ("running", "frozen"):
        with pytest.raises(ValueError, match=f"layer '2' has no running averages, which batch_norm='{way}' needs"):
            Evaluator(model, {"train": data()}, batch_norm=way)  # type: ignore[arg-type]
    assert np.isfinite(loss_at_itself(Evaluator(model, {"train": data()}), model))


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"statistics_split": "validation"}, "statistics_split is 'validation'; the data has 'train'"),
        ({"statistics_samples": 0}, "statistics_samples is 0"),
        ({"statistics_batch": -1}, "statistics_batch is -1"),
        ({"block": 0}, "block is 0"),
    ],
)
def test_bad_options_are_named(option: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Evaluator(network(), {"train": data()}, **option)  # type: ignore[arg-type]


class _Forked(nn.Module):
    """A network that cannot be traced: its path depends on values."""

    def __init__(self, body: nn.Module | None = None) -> None:
        super().__init__()
        self.body = body or network()

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.body(x)
        return logits if bool(x.sum() > -1e9) else -logits


def test_a_network_that_cannot_be_traced_gets_the_same_statistics() -> None:
    forked = _Forked()
    plain = loss_at_itself(Evaluator(network(), {"train": data()}), network())
    assert loss_at_itself(Evaluator(forked, {"train": data()}), forked) == pytest.approx(plain, rel=1e-6)


class ByFunction(nn.BatchNorm2d):
    """Does more than normalise, through a function that a tracer can follow."""

    def forward(self, input: Tensor) -> Tensor:
        statistics = (self.running_mean, self.running_var, self.weight, self.bias)
        return 2.0 * F.batch_norm(input, *statistics, self.training, 0.1, self.eps)


class WithActivation(nn.BatchNorm2d):
    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input).relu()


class ByHand(nn.BatchNorm2d):
    def forward(self, input: Tensor) -> Tensor:
        mean, variance = self.running_mean, self.running_var
        if self.training:
            mean, variance = input.mean((0, 2, 3)), input.var((0, 2, 3), unbiased=False)
        assert mean is not None
        assert variance is not None
        mean, scale = mean.view(-1, 1, 1), (variance + self.eps).rsqrt().view(-1, 1, 1)
        return (input - mean) * scale * self.weight.view(-1, 1, 1) + self.bias.view(-1, 1, 1)


class OfSquares(nn.BatchNorm2d):
    """Normalises something else than its input."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input**2)


class OfItsBatch(nn.BatchNorm2d):
    """Always takes the statistics of the batch."""

    def forward(self, input: Tensor) -> Tensor:
        return F.batch_norm(input, None, None, self.weight, self.bias, True, 0.1, self.eps)


def with_norm(norm: nn.Module) -> nn.Module:
    torch.manual_seed(0)
    norm.weight.data.uniform_(0.5, 2.0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), norm, nn.Conv2d(4, 4, 3), copy.deepcopy(norm), nn.Flatten(), nn.Linear(16, 5)
    )


def loss_of_one_batch(model: nn.Module) -> float:
    """What population statistics mean: the whole training set as one batch."""
    with torch.no_grad():
        return float(cross_entropy(copy.deepcopy(model).double().train()(data()[0].double()), data()[1]))


@pytest.mark.parametrize("norm", [ByFunction, WithActivation, ByHand])
@pytest.mark.parametrize("wrap", [nn.Sequential, lambda model: _Forked(model)], ids=["traced", "not traced"])
def test_layers_with_a_forward_pass_of_their_own_get_population_statistics(
    norm: Callable[[int], nn.Module], wrap: Callable[[nn.Module], nn.Module]
) -> None:
    model = wrap(with_norm(norm(4)))
    found = loss_at_itself(Evaluator(model, {"train": data()}, block=7), model)
    assert found == pytest.approx(loss_of_one_batch(model), rel=1e-5)


def test_hooks_of_layers_run_with_population_statistics() -> None:
    model = with_norm(nn.BatchNorm2d(4))
    model[3].register_forward_hook(lambda _, __, output: 3.0 * output)
    found = loss_at_itself(Evaluator(model, {"train": data()}, block=7), model)
    assert found == pytest.approx(loss_of_one_batch(model), rel=1e-5)


@pytest.mark.parametrize("norm", [OfSquares, OfItsBatch])
def test_a_layer_that_cannot_be_told_its_statistics_is_refused_by_name(norm: Callable[[int], nn.Module]) -> None:
    model = with_norm(norm(4))
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=rf"layer '1' is a {norm.__name__} .* use batch_norm='running' or 'frozen'"):
        Evaluator(model, {"train": data()})
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for way in ("running", "frozen"):
        assert np.isfinite(loss_at_itself(Evaluator(model, {"train": data()}, batch_norm=way), model))  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.* is deprecated")
def test_layers_in_torchscript_are_refused_unless_frozen() -> None:
    model = with_norm(nn.BatchNorm2d(4)).eval()
    scripted = torch.jit.script(model)
    with pytest.raises(ValueError, match="layer '1' is BatchNorm in TorchScript"):
        Evaluator(scripted, {"train": data()})
    found = loss_at_itself(Evaluator(scripted, {"train": data()}, batch_norm="frozen"), model)
    assert found == pytest.approx(float(cross_entropy(model(data()[0]), data()[1]).detach()), rel=1e-5)


class _Optional(nn.Module):
    """Arguments that are never passed."""

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, x: Tensor, *rest: Tensor, deep: bool = False, **options: Tensor) -> Tensor:  # noqa: ARG002
        output: Tensor = self.body(x)
        return output


class _Starred(_Optional):
    def forward(self, *inputs: Tensor) -> Tensor:  # type: ignore[override]
        output: Tensor = self.body(inputs[0])
        return output


@pytest.mark.parametrize("form", [_Optional, _Starred])
def test_arguments_that_are_not_given_do_not_matter(form: type[nn.Module]) -> None:
    model, plain = form(), network()
    found = loss_at_itself(Evaluator(model, {"train": data()}, block=7), model)
    assert found == loss_at_itself(Evaluator(plain, {"train": data()}, block=7), plain)
