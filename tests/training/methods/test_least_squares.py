"""Least squares and channel pruning: exact where an exact answer exists."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from tests.training.methods.cases import digits, normed, plain, residual, run
from valleyscope.training import partition
from valleyscope.training.epochs import loss_and_accuracy
from valleyscope.training.methods.channel_lasso import channel_gram, lasso_ranks, readers, solve_lasso
from valleyscope.training.methods.least_squares import refit


def test_filters_that_others_can_stand_for_are_replaced_exactly() -> None:
    model = plain()
    with torch.no_grad():
        model.conv1.weight[5] = model.conv1.weight[2]
        model.conv1.bias[5] = model.conv1.bias[2]
    original = deepcopy(model)
    with torch.no_grad():
        model.conv1.weight[5] = 0
        model.conv1.bias[5] = 0
    x = digits().x_train
    damage = float((model(x) - original(x)).detach().norm())
    refit(model, original, x)
    assert float((model(x) - original(x)).detach().norm()) < 0.02 * damage
    assert not model.conv1.weight[5].any()


def test_a_network_that_was_not_cut_is_left_alone() -> None:
    model = normed()
    before = deepcopy(model.state_dict())
    refit(model, deepcopy(model), digits().x_train)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_one_linear_layer_gets_the_solution_of_lstsq() -> None:
    torch.manual_seed(0)
    x = torch.randn(900, 6)
    original = nn.Sequential(nn.Linear(6, 6, bias=False), nn.Linear(6, 3))
    model = deepcopy(original)
    model[0].weight.data[:2] = 0
    refit(model, original, x)
    kept = x @ model[0].weight.detach().T
    design = torch.cat([kept, torch.ones(900, 1)], 1)
    best = design @ torch.linalg.lstsq(design, original(x).detach(), driver="gelsd").solution
    torch.testing.assert_close(model(x).detach(), best, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("network", [plain, normed, residual])
def test_after_least_squares_a_cut_costs_less(network) -> None:  # type: ignore[no-untyped-def]
    trained = network()
    run(trained, epochs=4)
    losses = {}
    for method in ("one-shot", "ls"):
        model = deepcopy(trained)
        found = run(model, method=method, of="sgd", sparsity=0.4, scope="layer")
        losses[method] = found.final.train_loss
        assert found.final.zero_groups == pytest.approx(0.4, abs=0.01)
        assert loss_and_accuracy(model, digits().x_train, digits().y_train)[0] == found.final.train_loss
    assert losses["ls"] < losses["one-shot"]


def test_the_lasso_satisfies_its_optimality_conditions() -> None:
    torch.manual_seed(0)
    features = torch.randn(60, 9, dtype=torch.float64)
    gram, target = features.T @ features, features.T @ (features @ torch.ones(9, dtype=torch.float64))
    beta = solve_lasso(gram, target, 25.0, torch.ones(9, dtype=torch.float64), sweeps=500)
    slope = target - gram @ beta
    assert ((slope - 25.0 * beta.sign()).abs()[beta != 0] < 1e-3).all()
    assert (slope.abs()[beta == 0] <= 25.0 + 1e-3).all()


def test_the_gram_matrix_of_channels_is_that_of_their_contributions() -> None:
    model = plain()
    x = digits().x_train[:16]
    inputs = model.relu2(model.pool2(model.conv2(model.relu1(model.pool1(model.conv1(x)))))).flatten(1).double()
    weight = model.linear1.weight.detach().double()
    parts = torch.stack(
        [(part @ w.T).flatten() for part, w in zip(inputs.split(4, 1), weight.split(4, 1), strict=True)]
    )
    torch.testing.assert_close(
        channel_gram(model, model.linear1, x, 12), (parts @ parts.T).detach(), rtol=1e-4, atol=1e-4
    )


def test_a_channel_that_contributes_nothing_leaves_first() -> None:
    features = torch.randn(50, 5, dtype=torch.float64)
    features[:, 3] = 0
    assert int(lasso_ranks(features.T @ features).argmin()) == 3


def test_readers_are_found_where_one_layer_reads_another_alone() -> None:
    assert readers(plain()) == {"conv1": "conv2", "conv2": "linear1", "linear1": "linear2"}
    assert readers(residual())["block1_1.conv1"] == "block1_1.conv2"
    assert "block1_1.conv2" not in readers(residual())
    assert len(partition(plain())) == 4
