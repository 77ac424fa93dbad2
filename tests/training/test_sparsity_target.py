"""AltSDP with a share of groups to prune: the threshold ends there, and what is zero stays zero."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn
from torch.nn.functional import cross_entropy

from valleyscope.training import AltSDP, Cancelled, build_model, load_dataset, partition, sparsity, train
from valleyscope.training.outcomes import Trained
from valleyscope.training.parameter_groups import group_norms, prunable


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(),
        nn.Linear(48, 40), nn.ReLU(), nn.Linear(40, 10),
    )  # fmt: skip


def run(model: nn.Module, **fields: object) -> Trained:
    settings = {"optimizer": "altsdp", "sparsity": 0.5, "epochs": 15, "lr": 0.05, "batch_size": 64} | fields
    return train(model, load_dataset("digits"), **settings)


@pytest.mark.parametrize("mode", ["prox", "dual", "cumulative"])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_wanted_share_is_reached_within_one_group_and_kept(mode: str, momentum: float) -> None:
    trained = run(network(), mode=mode, momentum=momentum, lr=0.05 * (1 - momentum))
    shares = [epoch.zero_groups for epoch in trained.epochs]
    first = next(n for n, share in enumerate(shares) if share >= 0.5)
    assert shares[first] == 0.5
    assert set(shares[first:]) == {shares[first]}
    assert len({epoch.threshold for epoch in trained.epochs[first:]}) == 1


def test_on_digits_the_loss_falls_back_to_that_of_sgd() -> None:
    torch.manual_seed(0)
    trained = train(
        build_model("cnn", channels=[16, 32], hidden=128),
        load_dataset("digits"),
        optimizer="altsdp",
        sparsity=0.6,
        epochs=60,
        schedule={"kind": "halving", "every": 15},
    )
    assert trained.final.zero_groups == pytest.approx(0.6, abs=0.01)
    assert trained.final.train_loss < 0.012


def test_a_run_too_short_for_a_threshold_cuts_what_is_missing_and_still_learns() -> None:
    data = load_dataset("digits")
    fields = {"epochs": 6, "batch_size": 32, "schedule": {"kind": "halving", "every": 2}}
    trained = train(build_model("cnn", data, seed=1), data, method="altsdp", sparsity=0.6, **fields)
    ended = trained.pruning["threshold_ended"]
    assert (trained.final.zero_groups, ended["epoch"]) == (106 / 176, 3)
    assert f"{ended['cut_groups']} groups were still missing and were cut by norm" in trained.pruning["text"]
    assert trained.final.test_accuracy > 0.7


def test_after_the_end_the_other_groups_move_as_by_sgd() -> None:
    model = network()
    optimizer = AltSDP(partition(model), lr=0.05, c=0.02, momentum=0.9, weight_decay=1e-3, sparsity=0.5)
    data = load_dataset("digits")
    x, y = data.x_train[:64], data.y_train[:64]
    while not optimizer.param_groups[0]["ended"]:
        optimizer.zero_grad()
        cross_entropy(model(x), y).backward()
        optimizer.step()
    zero = sparsity(model).groups
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    velocity = [optimizer.state[parameter]["momentum_buffer"].clone() for parameter in model.parameters()]
    optimizer.zero_grad()
    cross_entropy(model(x), y).backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    optimizer.step()
    assert sparsity(model).groups == zero
    for (name, value), gradient, pace in zip(model.named_parameters(), gradients, velocity, strict=True):
        alive = before[name].flatten(1).any(1) if value.dim() > 1 else before[name] != 0
        free = before[name] - 0.05 * (0.9 * pace + gradient + 1e-3 * before[name])
        torch.testing.assert_close(value[alive], free[alive])
        assert not value[~alive].any()


def test_a_cancelled_run_goes_on_to_the_bit_before_and_after_the_end(tmp_path: Path) -> None:
    whole = network()
    run(whole, momentum=0.9, lr=0.01)
    resumed = network()
    for stop in (5, 60, 200, None):
        steps = iter(range(10_000))
        cancelled = (lambda: False) if stop is None else (lambda steps=steps, stop=stop: next(steps) >= stop)
        try:
            run(resumed, momentum=0.9, lr=0.01, directory=tmp_path, cancelled=cancelled)
        except Cancelled:
            resumed = network(seed=1)
    for expected, found in zip(whole.state_dict().values(), resumed.state_dict().values(), strict=True):
        assert torch.equal(expected, found)


def test_parameters_without_a_partition_are_counted_by_rows() -> None:
    layer = nn.Linear(3, 4)
    optimizer = AltSDP(layer.parameters(), lr=1e-6, c=1e9, sparsity=0.5)
    layer(torch.ones(1, 3)).sum().backward()
    optimizer.step()
    assert optimizer.param_groups[0]["ended"] == 1
    assert int((layer.weight == 0).all(1).sum()) == 2
    assert layer.bias.all()


@pytest.mark.parametrize("mode", ["prox", "dual", "cumulative"])
def test_a_step_that_takes_too_many_groups_gives_the_largest_back_as_they_were(mode: str) -> None:
    model = network()
    groups = partition(model)
    optimizer = AltSDP(groups, lr=0.05, c=1e6, mode=mode, momentum=0.9, sparsity=0.5)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    norms = torch.cat([group_norms(layer) for layer in prunable(groups)])
    data = load_dataset("digits")
    cross_entropy(model(data.x_train[:64]), data.y_train[:64]).backward()
    optimizer.step()
    left = torch.cat([group_norms(layer) for layer in prunable(groups)]) > 0
    assert torch.equal(left, norms > norms.median())  # 26 of 52
    for layer in prunable(groups):
        alive = group_norms(layer) > 0
        for parameter in layer["params"]:
            old = next(old for old, new in zip(before, model.parameters(), strict=True) if new is parameter)
            assert torch.equal(parameter[alive], old[alive])
            assert not parameter[~alive].any()


def test_tied_filters_are_given_back_together() -> None:
    model = build_model("resnet56", load_dataset("digits"), depth=8, width=6, seed=0)
    groups = partition(model, tie_residual=True)
    optimizer = AltSDP(groups, lr=0.05, c=1e6, sparsity=0.4)
    data = load_dataset("digits")
    cross_entropy(model(data.x_train[:64]), data.y_train[:64]).backward()
    optimizer.step()
    assert sparsity(groups).groups == pytest.approx(0.4, abs=1 / sum(layer.groups for layer in sparsity(groups).layers))
    tied = next(layer for layer in prunable(groups) if "tied" in layer["name"])
    gone = group_norms(tied) == 0
    assert 0 < int(gone.sum()) < len(gone)
    for parameter, offset in zip(tied["params"], tied["offsets"], strict=True):
        zero = (parameter == 0).view(len(parameter), -1).all(1)
        own = gone[offset : offset + len(parameter)]
        assert zero[own].all()
        assert torch.equal(zero, own) or parameter.dim() == 1  # the shifts of BatchNorm start at zero


@pytest.mark.parametrize("share", [0, 1, 1.5, -0.1])
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=f"sparsity={share}"):
        AltSDP(network().parameters(), sparsity=share)
    with pytest.raises(ValidationError, match="sparsity"):
        run(network(), sparsity=share)


def test_a_share_that_the_floor_forbids_is_refused() -> None:
    with pytest.raises(ValueError, match=r"sparsity=0.8 cannot be reached: floor=0.3"):
        AltSDP(network().parameters(), sparsity=0.8, floor=0.3)
    with pytest.raises(ValidationError, match=r"sparsity=0.8 cannot be reached: floor=0.3"):
        run(network(), sparsity=0.8, floor=0.3)


def test_two_strengths_are_refused() -> None:
    with pytest.raises(ValidationError, match=r"target=1.0 and sparsity=0.5: give one"):
        run(network(), target=1.0)
