"""The penalties of NS, PR and DeepHoyer have the gradients of their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.training.methods.cases import context, normed
from valleyscope.training.methods.builder import build_method
from valleyscope.training.methods.deephoyer import hoyer_gradient
from valleyscope.training.methods.slimming import first_valley, polarization_gradient


@pytest.mark.parametrize("shape", [(5, 3, 3, 3), (4, 7)])
def test_the_gradient_of_deephoyer_is_that_of_its_formula(shape: tuple[int, ...]) -> None:
    w = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    penalty = torch.zeros((), dtype=torch.float64)
    for rows in (w.flatten(1), w.transpose(0, 1).flatten(1)):
        penalty = penalty + rows.norm(dim=1).sum() ** 2 / (w**2).sum()
    (expected,) = torch.autograd.grad(penalty, w)
    torch.testing.assert_close(hoyer_gradient(w), expected)


def test_deephoyer_does_not_depend_on_the_scale_of_a_layer() -> None:
    w = torch.randn(4, 6, dtype=torch.float64)
    assert float((hoyer_gradient(w) * w).sum()) == pytest.approx(0, abs=1e-10)


def test_deephoyer_leaves_a_zero_filter_and_a_zero_layer_finite() -> None:
    w = torch.randn(4, 6)
    w[1] = 0
    assert hoyer_gradient(w).isfinite().all()
    assert not hoyer_gradient(torch.zeros(3, 2)).any()


def test_the_gradient_of_polarization_is_that_of_its_formula() -> None:
    factors = [
        torch.rand(5, dtype=torch.float64, requires_grad=True),
        torch.rand(3, dtype=torch.float64, requires_grad=True),
    ]
    together = torch.cat(factors)
    penalty = (1.4 * together.abs() - (together - together.mean()).abs()).sum()
    expected = torch.autograd.grad(penalty, factors)
    for found, wanted in zip(polarization_gradient(list(factors), 1.4), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_polarization_keeps_factors_between_zero_and_one() -> None:
    method = build_method(context(normed(), method="pr"))
    gammas: list[Tensor] = method.factors  # type: ignore[attr-defined]
    gammas[0].data.copy_(torch.linspace(-1, 2, len(gammas[0])))
    method.after_step(1)
    assert torch.equal(gammas[0], torch.linspace(-1, 2, len(gammas[0])).clamp(0, 1))


def test_the_first_valley_lies_between_the_two_heaps() -> None:
    factors = torch.cat(
        [torch.full((30,), 0.011), torch.full((10,), 0.03), torch.full((20,), 0.75), torch.full((5,), 0.9)]
    )
    assert 0.04 <= first_valley(factors) <= 0.74
    assert first_valley(torch.full((9,), 0.5)) == 0.0


def test_slimming_adds_the_sign_of_every_factor() -> None:
    model = normed()
    method = build_method(context(model, method="ns", penalty=0.01, sparsity=0.3))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    model[1].weight.data[0] = -0.5
    method.before_step()
    assert torch.equal(model[1].weight.grad, 0.01 * model[1].weight.detach().sign())
    assert not model[0].weight.grad.any()


@pytest.mark.parametrize("method", ["pr", "deephoyer"])
def test_without_a_wish_what_lies_below_the_threshold_goes_but_for_the_floor(method: str) -> None:
    model = normed()
    run = context(model, method=method, floor=0.25)
    factors = list(run.norm_parameters.values())
    with torch.no_grad():
        for gamma, _ in factors:  # two heaps: a third of each layer at nearly zero
            gamma.fill_(0.8)[::3] = 1e-5
        factors[0][0].fill_(1e-5)[0] = 0.8  # all but one of the first layer
        for layer, (gamma, beta) in zip(run.layers, factors, strict=True):
            layer["params"][0].mul_(gamma.view(-1, *(1,) * (layer["params"][0].dim() - 1)))
            beta.zero_()
    removed = build_method(run).removed_at_the_end()
    assert removed is not None
    gone = [int(removed[layer["name"]].sum()) for layer in run.layers]
    assert gone == [7, 7, 7]  # of 10, 20 and 20; the floor keeps 3 of the first
