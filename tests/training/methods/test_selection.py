"""Scores, the choice of groups, and the count of multiply-adds left."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.training.methods.cases import context, digits, normed, plain, residual
from valleyscope.training import build_model, partition
from valleyscope.training.methods.builder import build_method
from valleyscope.training.methods.correlation import independence
from valleyscope.training.methods.scores import gamma_scores, norm_scores, taylor_scores
from valleyscope.training.methods.selection import select, spread
from valleyscope.training.models.operation_count import multiply_adds
from valleyscope.training.models.remaining_operations import RemainingOperations


def test_the_groups_of_lowest_score_go_first() -> None:
    run = context(plain(), method="one-shot", sparsity=0.4)
    scores = norm_scores(run)
    removed = select(run, scores)
    gone = torch.cat([score[removed[name]] for name, score in scores.items()])
    kept = torch.cat([score[~removed[name]] for name, score in scores.items()])
    assert len(gone) == round(0.4 * 50)
    assert gone.max() <= kept.min()


def test_by_layer_every_layer_loses_its_share() -> None:
    run = context(plain(), method="sfp", sparsity=0.5)
    removed = select(run, norm_scores(run), by_layer=True)
    assert {name: int(mask.sum()) for name, mask in removed.items()} == {"conv1": 4, "conv2": 6, "linear1": 15}
    assert sum(spread(7, {"a": 3, "b": 11, "c": 2}, {"a": 2, "b": 10, "c": 1}).values()) == 7


def test_a_layer_never_loses_its_last_group_or_its_floor() -> None:
    run = context(plain(), method="one-shot", sparsity=0.7, floor=0.25)
    scores = norm_scores(run)
    scores["conv1"] = scores["conv1"] * 1e-6
    assert int(select(run, scores)["conv1"].sum()) == 6


@pytest.mark.parametrize("wanted", [0.2, 0.5])
def test_multiply_adds_are_cut_to_the_wish_and_not_further_than_one_group(wanted: float) -> None:
    run = context(plain(), method="one-shot", macs=wanted)
    scores = norm_scores(run)
    removed = select(run, scores)
    assert run.operations.share(removed) <= wanted
    last = max(((float(scores[name][mask].max()), name) for name, mask in removed.items() if mask.any()))[1]
    removed[last][scores[last].masked_fill(~removed[last], -1).argmax()] = False
    assert run.operations.share(removed) > wanted


@pytest.mark.parametrize("half", [(4, 6, 15), (2, 12, 5)])
def test_the_count_is_that_of_a_network_built_narrower(half: tuple[int, int, int]) -> None:
    model = plain()
    found = RemainingOperations(model, partition(model), (1, 8, 8))
    sizes = dict(zip(("conv1", "conv2", "linear1"), (8, 12, 30), strict=True))
    removed = {name: torch.arange(size) >= kept for (name, size), kept in zip(sizes.items(), half, strict=True)}
    narrower = build_model("cnn", digits(), channels=half[:2], hidden=half[2])
    left = sum(layer.multiply_adds for layer in found.layers(removed).values())
    assert left == multiply_adds(narrower, (1, 8, 8))


def test_in_a_residual_network_a_channel_lives_while_any_summand_does() -> None:
    model = residual()
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.constant_(module.bias, 0.1)  # after training no shift is exactly zero
    found = RemainingOperations(model, partition(model), (1, 8, 8))
    assert found.share() == 1.0
    stem = {"conv": torch.ones(6, dtype=torch.bool)}
    layers = found.layers(stem)
    assert layers["block1_1.conv1"].inputs == 0
    assert layers["block2_1.conv1"].inputs == 6  # block1_1.conv2 still writes into the sum
    # A filter that nothing reads any more is not computed, though its weights are there.
    nothing = found.layers({"block1_1.conv2": torch.ones(6, dtype=torch.bool)})
    assert nothing["block1_1.conv1"].outputs == 0


def test_taylor_scores_are_squared_products_of_weights_and_gradients() -> None:
    model = plain()
    run = context(model, method="one-shot", score="taylor", sparsity=0.5, batch_size=1437)
    cross_entropy(model(digits().x_train), digits().y_train).backward()
    expected = (
        (model.conv1.weight * model.conv1.weight.grad).sum((1, 2, 3)) + model.conv1.bias * model.conv1.bias.grad
    ) ** 2
    torch.testing.assert_close(taylor_scores(run)["conv1"], expected.detach())


def test_gamma_scores_are_the_factors_and_layers_without_are_never_cut() -> None:
    model = normed()
    model[1].weight.data[3] = -0.25
    assert gamma_scores(context(model, method="ns", sparsity=0.2))["0"][3] == 0.25
    mixed = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 10))
    run = context(mixed, method="ns", sparsity=0.3)
    assert not select(run, gamma_scores(run))["3"].any()


def test_fpgm_scores_are_sums_of_distances() -> None:
    model = plain()
    method = build_method(context(model, method="fpgm", sparsity=0.5))
    rows = model.conv1.weight.detach().flatten(1)
    expected = torch.stack([sum((rows[i] - rows[j]).norm() for j in range(8)) for i in range(8)])  # type: ignore[misc]
    torch.testing.assert_close(method.scores()["conv1"], expected, rtol=1e-4, atol=1e-4)  # type: ignore[attr-defined]


def test_of_two_filters_that_are_alike_the_smaller_one_goes() -> None:
    rows = torch.randn(5, 40)
    rows[3] = 0.5 * rows[1]
    found = independence(rows)
    assert int(found.argmin()) == 3
    assert found[3] == pytest.approx(0, abs=1e-9)
    assert found[1] > 0.3
    assert found[rows.norm(dim=1).argmax()] == 1
