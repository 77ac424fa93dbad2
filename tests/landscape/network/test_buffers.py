"""Buffers of state dicts: used where all networks agree on them, refused by name where they do not."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from tests.landscape.reference import samples
from valleyscope.landscape import compare, evaluate, fit_curve
from valleyscope.landscape.network.buffers import with_buffers


class Centred(nn.Module):
    """Its buffer is what it takes from the input."""

    def __init__(self, mean: float = 0.0, norm: bool = False) -> None:
        super().__init__()
        self.register_buffer("mean", torch.full((6,), mean))
        self.first = nn.Linear(6, 8)
        self.norm = nn.BatchNorm1d(8) if norm else nn.Identity()
        self.last = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.last(torch.tanh(self.norm(self.first(x - self.mean))))
        return output


def state(seed: int, mean: float, norm: bool = False) -> dict[str, Tensor]:
    torch.manual_seed(seed)
    model = Centred(mean, norm)
    if norm:
        model.norm.running_mean.add_(float(seed))
    return model.state_dict()


DATA = samples((6,), 40, 3)


def test_a_comparison_uses_the_buffers_of_its_state_dicts() -> None:
    minima = {"a": state(0, 2.0), "b": state(1, 2.0)}
    found = compare(Centred(), minima, DATA, resolution=3, epochs=1)
    for name, weights in minima.items():
        expected = evaluate(Centred(), weights, DATA)["train"].loss
        assert found.minima[name].final["train_loss"] == pytest.approx(expected, rel=1e-6)


def test_a_curve_is_fitted_with_the_buffers_of_its_ends() -> None:
    fitted = fit_curve(Centred(), state(0, 2.0), state(1, 2.0), DATA, epochs=1)
    known = fit_curve(Centred(2.0), state(0, 2.0), state(1, 2.0), DATA, epochs=1)
    assert torch.equal(fitted.bend, known.bend)


def test_buffers_that_differ_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"'a' and 'b' differ in the buffer 'mean'"):
        compare(Centred(), {"a": state(0, 2.0), "b": state(1, 1.0)}, DATA, resolution=3, epochs=1)
    with pytest.raises(ValueError, match=r"'start' and 'end' differ in the buffer 'mean'"):
        fit_curve(Centred(), state(0, 2.0), state(1, 1.0), DATA, epochs=1)


def test_statistics_of_batch_norm_may_differ_unless_they_are_frozen() -> None:
    minima = {"a": state(0, 0.0, norm=True), "b": state(1, 0.0, norm=True)}
    compare(Centred(norm=True), minima, DATA, resolution=3, epochs=1)
    with pytest.raises(ValueError, match=r"'norm\.running_mean'.*batch_norm='population'"):
        compare(Centred(norm=True), minima, DATA, resolution=3, epochs=1, batch_norm="frozen")


def test_frozen_statistics_that_agree_are_those_of_the_state_dicts() -> None:
    first, second = state(0, 0.0, norm=True), state(1, 0.0, norm=True)
    for key in ("running_mean", "running_var"):
        first[f"norm.{key}"] = second[f"norm.{key}"] = torch.full((8,), 1.5)
    found = compare(Centred(norm=True), {"a": first, "b": second}, DATA, resolution=3, epochs=1, batch_norm="frozen")
    model = Centred(norm=True).eval()
    model.load_state_dict(first)
    expected = nn.functional.cross_entropy(model(DATA[0]), DATA[1]).item()
    assert found.minima["a"].final["train_loss"] == pytest.approx(expected, rel=1e-5)


def test_the_users_model_keeps_its_own() -> None:
    model = Centred()
    assert with_buffers(model, {"a": state(0, 0.0)}, statistics=True) is model
    assert with_buffers(model, {"a": state(0, 2.0)}, statistics=True) is not model
    assert torch.equal(model.mean, torch.zeros(6))


def test_one_sample_is_too_few_for_batch_norm_and_the_setting_is_named() -> None:
    x, y = DATA[0][:3], DATA[1][:3]
    with pytest.raises(ValueError, match=r"batch_size=2 splits 3 samples into batches of one"):
        fit_curve(Centred(norm=True), state(0, 0.0, norm=True), state(1, 0.0, norm=True), (x, y), batch_size=2)
