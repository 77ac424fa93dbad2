"""Every method reaches the wished share with exact zeros, resumes to the bit, and says what its cut cost."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from tests.training.compaction.networks import difference
from tests.training.methods.cases import context, digits, normed, plain, run
from valleyscope.training import Cancelled, Training, build_model, compact, partition, sparsity, train
from valleyscope.training.batch_norm import reestimate_statistics
from valleyscope.training.epochs import loss_and_accuracy
from valleyscope.training.methods.builder import build_method
from valleyscope.training.methods.catalog import METHODS
from valleyscope.training.parameter_groups import group_norms, prunable
from valleyscope.training.state import identity

BY_FACTORS = [name for name, info in METHODS.items() if info.needs_batch_norm]


def network(method: str) -> nn.Module:
    return normed() if method in BY_FACTORS else plain()


@pytest.mark.parametrize("method", METHODS)
def test_the_wished_share_of_groups_is_exactly_zero_at_the_end(method: str) -> None:
    """In a run as short as this one, too, and the zero groups can be removed without changing an output."""
    model = network(method)
    more = {"factors": "ones"} if method == "sdp" else {}  # the Hessian is the business of another room
    found = run(model, method=method, sparsity=0.5, **more)
    assert found.final.zero_groups == pytest.approx(0.5, abs=0.001)
    settings = found.settings
    zero = [int((group_norms(layer) == 0).sum()) for layer in prunable(partition(model, settings.structure))]
    assert sum(zero) == sum(layer.zero_groups for layer in found.final.layers)
    assert found.pruning["method"] == method
    assert found.pruning["collapsed"] is (found.final.test_accuracy <= 2 * 37 / 360)
    assert loss_and_accuracy(model, digits().x_train, digits().y_train)[0] == found.final.train_loss
    small = compact(model.eval(), digits().x_test[:1])
    assert difference(model, small.model, digits().x_test) < 1e-5
    if settings.structure == "filter" and not found.pruning["collapsed"]:  # a dead network is a constant
        before, after = small.report.before.multiply_adds, small.report.after.multiply_adds
        assert found.pruning["macs"] == pytest.approx(after / before, abs=1e-9)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "grda"])
def test_multiply_adds_can_be_wished_for_instead(method: str) -> None:
    found = run(network(method), method=method, macs=0.5)
    assert 0.35 < found.pruning["macs"] <= 0.5  # one filter of so small a network is a tenth


KINDS: dict[str, dict[str, Any]] = {
    "optimiser": {"method": "rmda", "sparsity": 0.5, "retrain": {"epochs": 1, "lr": 0.02}},
    "lasso": {"method": "group-lasso", "macs": 0.5},
    "penalty": {"method": "pr", "sparsity": 0.4, "momentum": 0.9, "lr": 0.02},
    "projection": {"method": "sfp", "sparsity": 0.5, "momentum": 0.9, "lr": 0.02},
    "periods": {"method": "hesso", "sparsity": 0.5, "momentum": 0.9, "lr": 0.02},
    "narrower": {"method": "ucs", "sparsity": 0.5},
    "post hoc": {"method": "ls", "sparsity": 0.5},
    "exact step": {"method": "sdp", "sparsity": 0.5, "factors": "ones", "retrain": {"epochs": 1, "lr": 0.02}},
    "retraining": {"method": "one-shot", "sparsity": 0.5, "momentum": 0.9, "retrain": {"epochs": 2, "lr": 0.01}},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_cancelled_run_goes_on_to_the_bit(kind: str, tmp_path: Path) -> None:
    fields = {"epochs": 3} | KINDS[kind]
    whole = normed()
    expected = run(whole, **fields)
    total = 23 * expected.settings.total_epochs
    resumed = normed()
    for stop in (5, total // 3, total // 3, None):
        steps = iter(range(10_000))
        cancelled = (lambda: False) if stop is None else (lambda steps=steps, stop=stop: next(steps) >= stop)
        try:
            found = run(resumed, directory=tmp_path, cancelled=cancelled, **fields)
        except Cancelled:
            resumed = normed(seed=1)
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    assert found.pruning == expected.pruning


def test_method_altsdp_is_the_optimiser_altsdp() -> None:
    first, second = plain(), plain()
    run(first, optimizer="altsdp", sparsity=0.5)
    run(second, method="altsdp", sparsity=0.5)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_grda_is_the_dual_mode_on_single_weights() -> None:
    first, second = plain(), plain()
    run(first, optimizer="altsdp", mode="dual", structure="element", c=0.05)
    run(second, method="grda", c=0.05)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))


def test_the_end_of_the_threshold_is_recorded() -> None:
    found = run(plain(), method="altsdp", sparsity=0.5)
    ended = found.pruning["threshold_ended"]
    assert ended["threshold"] == found.final.threshold
    assert found.epochs[ended["epoch"] - 1].zero_groups >= 0.5
    assert f"threshold ended at epoch {ended['epoch']}, G = " in found.pruning["text"]


def test_a_cut_is_measured_before_and_after_with_stale_and_with_new_statistics() -> None:
    model = normed()
    run(model, epochs=4)
    before = loss_and_accuracy(model, digits().x_test, digits().y_test)
    cut = run(model, method="one-shot", of="sgd", sparsity=0.5).pruning["cut"]
    assert (cut["test_loss_before"], cut["test_accuracy_before"]) == before
    assert cut["train_loss_stale"] != cut["train_loss_after"]
    assert (cut["test_loss_after"], cut["test_accuracy_after"]) == loss_and_accuracy(
        model, digits().x_test, digits().y_test
    )


def test_new_statistics_are_those_of_all_training_data() -> None:
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Dropout(0.5), nn.Linear(64, 10))
    model[1].num_batches_tracked.fill_(7)
    generator = torch.get_rng_state()
    reestimate_statistics(model, digits().x_train)
    flat = digits().x_train.flatten(1)
    torch.testing.assert_close(model[1].running_mean, flat.mean(0), atol=0.03, rtol=0)
    torch.testing.assert_close(model[1].running_var, flat.var(0), atol=0.1, rtol=0.1)
    assert model[1].num_batches_tracked == 7
    assert torch.equal(generator, torch.get_rng_state())
    assert model.training


def test_a_collapsed_network_is_called_so() -> None:
    found = run(plain(), epochs=1, lr=1e-4, method="one-shot", sparsity=0.9)
    assert found.pruning["collapsed"]
    assert "no better than guessing" in found.pruning["text"]


def test_zero_groups_stay_zero_while_a_network_is_retrained() -> None:
    model = normed()
    found = run(
        model, method="ns", sparsity=0.5, momentum=0.9, lr=0.02, weight_decay=1e-3, retrain={"epochs": 2, "lr": 0.02}
    )
    assert [epoch.epoch for epoch in found.epochs] == list(range(1, 9))
    assert [epoch.zero_groups for epoch in found.epochs[5:]] == [0.5] * 3
    assert [epoch.learning_rate for epoch in found.epochs[6:]] == [0.02] * 2
    assert found.final.train_loss < found.pruning["cut"]["train_loss_after"]


def test_soft_filter_pruning_lets_filters_grow_again() -> None:
    for model in (plain(), normed()):
        method = build_method(context(model, method="sfp", sparsity=0.5))
        for module in model.modules():
            if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d):
                nn.init.constant_(module.bias, 0.1)
        method.after_epoch(1)
        filters = method.scores()  # type: ignore[attr-defined]
        assert sum(int((score == 0).sum()) for score in filters.values()) == 25
        model.train()
        model(digits().x_train[:64]).sum().backward()
        torch.optim.SGD(model.parameters(), lr=0.1).step()
        grown = method.scores()  # type: ignore[attr-defined]
        assert sum(int((score == 0).sum()) for score in grown.values()) < 25


def test_a_narrower_network_is_the_one_that_is_built_narrower() -> None:
    """Trained side by side from the same weights, the two stay equal."""
    wide = plain()
    method = build_method(context(wide, method="ucs", sparsity=0.5))
    method.start()
    narrow = build_model("cnn", digits(), channels=[4, 6], hidden=15)
    with torch.no_grad():
        for small, large in zip(narrow.parameters(), wide.parameters(), strict=True):
            small.copy_(large[tuple(slice(size) for size in small.shape)])
    found = run_frozen(wide, method)
    expected = run_frozen(narrow, None)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert sparsity(wide).groups == 0.5


def run_frozen(model: nn.Module, method: Any) -> torch.Tensor:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for start in range(0, 640, 64):
        optimizer.zero_grad()
        x, y = digits().x_train[start : start + 64], digits().y_train[start : start + 64]
        torch.nn.functional.cross_entropy(model(x), y).backward()
        if method is not None:
            method.before_step()
        optimizer.step()
    return model(digits().x_test).detach()


def test_the_groups_that_hesso_fades_go_linearly_to_zero() -> None:
    model = plain()
    method = build_method(context(model, method="hesso", sparsity=0.5, periods=1))
    method.optimizer()
    start = {name: value.clone() for name, value in model.named_parameters()}
    for step in range(1, method.first + method.length + 1):  # type: ignore[attr-defined]
        method.after_step(step)
        done = step - method.first  # type: ignore[attr-defined]
        if done > 0:
            name = "conv2"
            fading = method.fading[name]  # type: ignore[attr-defined]
            left = 1 - done / method.length  # type: ignore[attr-defined]
            torch.testing.assert_close(
                model.conv2.weight[fading], left * start["conv2.weight"][fading], atol=1e-5, rtol=1e-3
            )
            assert torch.equal(model.conv2.weight[~fading], start["conv2.weight"][~fading])
    assert sparsity(model).groups == 0.5


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": "magic"}, "method"),
        (
            {"method": "sfp", "sparsity": 0.5, "penalty": 1.0},
            r"penalty=1.0: method 'sfp' has no such option; it has retrain",
        ),
        ({"method": "ns", "sparsity": 1.5}, "sparsity"),
        ({"method": "ns", "macs": 0}, "macs"),
        ({"method": "hesso", "sparsity": 0.8, "floor": 0.3}, r"sparsity=0.8 cannot be reached: floor=0.3"),
        ({"method": "sfp", "sparsity": 0.5, "structure": "element"}, "prunes filters only"),
        ({"method": "ns", "optimizer": "altsdp"}, "contradicts"),
        ({"method": "altsdp", "sparsity": 0.5, "macs": 0.5}, r"sparsity=0.5 and macs=0.5"),
        ({"method": "one-shot", "structure": "kernel", "macs": 0.5}, "only whole filters save"),
    ],
)
def test_settings_that_make_no_sense_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Training(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"method": "sfp"}, "method 'sfp' must know how much to prune"),
        ({"method": "ns", "sparsity": 0.5}, "prunes by the factors of BatchNorm, and the network has none"),
        ({"method": "one-shot", "score": "gamma", "sparsity": 0.5}, "score 'gamma' is the factor of BatchNorm"),
        ({"retrain": {"epochs": 1, "lr": 0.1}}, "retrain belongs to pruning methods"),
        ({"method": "one-shot", "sparsity": 0.99}, r"sparsity=0.99 cannot be reached: .* 0.940 is the most"),
        ({"method": "one-shot", "macs": 0.001}, r"macs=0.001 cannot be reached"),
    ],
)
def test_what_a_network_makes_impossible_is_refused_before_the_first_step(fields: dict[str, Any], message: str) -> None:
    model = plain()
    before = deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        train(model, digits(), Training(**fields))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_the_identity_of_runs_without_method_is_that_of_older_versions() -> None:
    assert identity(plain(), digits(), Training(epochs=3)) == OLD_IDENTITY


OLD_IDENTITY = "52cd417eb9d11edab16ee63c1fd891746321bdb9a04cbd371b72ae800f95ff0c"
