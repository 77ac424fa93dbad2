"""AltSDP as a torch optimiser: states, schedulers, closures, parameter groups, and what it refuses."""

from __future__ import annotations

import copy
import io
import math

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.training.reference import MODES, Case, assert_same_bits, descend, network, weights_of
from valleyscope.training.altsdp import AltSDP
from valleyscope.training.parameter_groups import partition


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
