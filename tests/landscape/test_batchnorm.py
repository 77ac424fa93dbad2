"""The three ways to BatchNorm statistics at a point, and the memory of the default one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from landscape import Evaluator, flatten


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


def test_too_little_memory_is_said_with_what_would_fit() -> None:
    with pytest.raises(ValueError, match=r"over 50 samples need .* memory_limit=0.0 GB: use statistics_samples=\d+"):
        Evaluator(network(), {"train": data()}, memory_limit=10_000)
    Evaluator(network(), {"train": data()}, memory_limit=10_000_000)
    Evaluator(network(), {"train": data()}, memory_limit=10_000, batch_norm="running")


def test_layers_without_averages_need_population_statistics() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 5), nn.BatchNorm1d(5, track_running_stats=False))
    for way in ("running", "frozen"):
        with pytest.raises(ValueError, match=f"layer '2' keeps no running averages, which batch_norm='{way}' needs"):
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

    def __init__(self) -> None:
        super().__init__()
        self.body = network()

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.body(x)
        return logits if bool(x.sum() > -1e9) else -logits


def test_a_network_that_cannot_be_traced_gets_the_same_statistics() -> None:
    forked = _Forked()
    plain = loss_at_itself(Evaluator(network(), {"train": data()}), network())
    assert loss_at_itself(Evaluator(forked, {"train": data()}), forked) == pytest.approx(plain, rel=1e-6)
