"""Fitting a curve: gradients, what it reaches, and that a killed fit goes on where it was."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn.utils import vector_to_parameters

from valleyscope.landscape.cancellation import Cancelled
from valleyscope.landscape.fitting.fit_curve import (
    CurveFit,
    Diverged,
    FittingProgress,
    FittingSettings,
    fit_curve,
    piecewise_linear,
)
from valleyscope.landscape.geometry.curves import Bezier, Curve, PolyChain, line
from valleyscope.landscape.geometry.vectors import dimension, flatten, unflatten, views

ROOT = Path(__file__).resolve().parents[3]


def convolutional(dtype: torch.dtype = torch.float64) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(4, 3, 3), nn.Flatten(), nn.Linear(3, 5)
    ).to(dtype)


def with_noise(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """A network with BatchNorm and dropout: state beyond its parameters, and randomness in its layers."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.3), nn.Flatten(), nn.Linear(64, 5)
    ).to(dtype)


def batch(count: int = 40, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(count, 2, 6, 6, generator=generator, dtype=dtype)
    return x, torch.randint(5, (count,), generator=generator)


def two_minima(model: nn.Module) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(2)
    return tuple(  # type: ignore[return-value]
        0.3 * torch.randn(dimension(model), generator=generator, dtype=torch.float64).to(flatten(model))
        for _ in range(2)
    )


def network_8x8() -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 5))


@pytest.mark.parametrize("kind", ["bezier", "polychain"])
@pytest.mark.parametrize("bends", [1, 3])
def test_steps_equal_autograd_and_torch_sgd_on_the_explicit_formula(kind: str, bends: int) -> None:
    """The bends follow torch's SGD on loss(w(t)) + (decay / 2) |w(t)|^2 with w(t) written out, for a hundred steps."""
    model, (x, y) = convolutional(), batch()
    start, end = two_minima(model)
    settings = FittingSettings(kind, bends, epochs=25, batch_size=10, lr=0.1, momentum=0.9, weight_decay=0.01)
    fit = CurveFit(model, start, end, (x, y), settings)
    shares = torch.linspace(0, 1, bends + 2, dtype=torch.float64)[1:-1]
    free = [(start + share * (end - start)).requires_grad_() for share in shares]
    optimizer = torch.optim.SGD(free, lr=0.1, momentum=0.9)
    make: type[Curve] = Bezier if kind == "bezier" else PolyChain
    for position in range(100):
        done = fit.step(position, rate=0.1)
        order = np.random.default_rng([0, done.epoch]).permutation(40)
        chosen = torch.from_numpy(order[done.step * 10 : done.step * 10 + 10])
        row = make(torch.zeros(bends + 2, 1)).coefficients(done.t)[0]
        w = sum(float(c) * p for c, p in zip(row, [start, *free, end], strict=True))
        assert isinstance(w, Tensor)
        loss = F.cross_entropy(torch.func.functional_call(model, views(model, w), (x[chosen],)), y[chosen])
        assert done.loss == pytest.approx(loss.item(), rel=1e-10)
        optimizer.zero_grad()
        (loss + 0.005 * w @ w).backward()
        optimizer.step()
    torch.testing.assert_close(fit.curve().bends, torch.stack([bend.detach() for bend in free]), rtol=1e-9, atol=1e-11)


def test_first_step_is_the_coefficient_times_the_gradient_at_the_point() -> None:
    model, (x, y) = convolutional(), batch()
    start, end = two_minima(model)
    fit = CurveFit(model, start, end, (x, y), FittingSettings(batch_size=40, momentum=0.0))
    done = fit.step(0, rate=1.0)
    w = line(start, end).point(0.5).mul(2 * done.t * (1 - done.t)) + (1 - done.t) ** 2 * start + done.t**2 * end
    vector_to_parameters(w.clone(), model.parameters())
    F.cross_entropy(model(x), y).backward()
    gradient = torch.cat([parameter.grad.reshape(-1) for parameter in model.parameters() if parameter.grad is not None])
    moved = (start + end) / 2 - fit.curve().bend
    torch.testing.assert_close(moved, 2 * done.t * (1 - done.t) * gradient, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["bezier", "polychain"])
def test_ends_stay_bit_by_bit_and_the_model_is_not_touched(kind: str) -> None:
    model, data = with_noise(), batch(dtype=torch.float32)
    start, end = two_minima(model)
    model.eval()
    before = copy.deepcopy(model.state_dict())
    noise = torch.get_rng_state()
    curve = fit_curve(model, start, unflatten(model, end), data, kind=kind, bends=2, epochs=2, batch_size=16)
    assert torch.equal(curve.start, start)
    assert torch.equal(curve.end, end)
    assert curve.kind == kind
    assert curve.points.dtype == torch.float32
    assert not model.training
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(torch.get_rng_state(), noise)


def test_equal_seeds_give_equal_curves_and_the_global_generator_plays_no_part() -> None:
    model, data = with_noise(), batch(dtype=torch.float32)
    start, end = two_minima(model)

    def fit(seed: int) -> Tensor:
        torch.rand(7)
        return fit_curve(model, start, end, data, epochs=2, batch_size=16, seed=seed).bend

    assert torch.equal(fit(3), fit(3))
    assert not torch.equal(fit(3), fit(4))


def test_bends_start_equally_spaced_on_the_line() -> None:
    model = convolutional()
    start, end = two_minima(model)
    fit = CurveFit(model, start, end, batch(), FittingSettings(bends=3))
    for share, bend in zip((0.25, 0.5, 0.75), fit.curve().bends, strict=True):
        torch.testing.assert_close(bend, start + share * (end - start))


def test_batches_cover_every_sample_once_an_epoch_and_are_even() -> None:
    model, (x, y) = convolutional(), batch(41)
    sizes: list[int] = []

    def count(images: Tensor, _: torch.Generator) -> Tensor:
        sizes.append(len(images))
        return images

    fit_curve(model, *two_minima(model), (x, y), epochs=1, batch_size=20, augment=count)
    assert sorted(sizes) == [13, 14, 14]


def test_augmentation_draws_from_its_own_seeded_generator() -> None:
    model, data = convolutional(), batch()
    ends = two_minima(model)

    def shake(images: Tensor, generator: torch.Generator) -> Tensor:
        return images + torch.randn(images.shape, generator=generator, dtype=images.dtype)

    first = fit_curve(model, *ends, data, epochs=1, batch_size=16, augment=shake).bend
    assert torch.equal(first, fit_curve(model, *ends, data, epochs=1, batch_size=16, augment=shake).bend)
    assert not torch.equal(first, fit_curve(model, *ends, data, epochs=1, batch_size=16).bend)


def test_learning_rate_is_flat_then_falls_linearly_to_a_hundredth() -> None:
    assert [piecewise_linear(share) for share in (0.0, 0.25, 0.5)] == [1.0, 1.0, 1.0]
    assert piecewise_linear(0.7) == pytest.approx(0.505)
    assert [piecewise_linear(share) for share in (0.9, 0.95, 1.0)] == pytest.approx([0.01, 0.01, 0.01])


def test_progress_tells_every_step_in_order() -> None:
    model = convolutional()
    told: list[FittingProgress] = []
    fit_curve(model, *two_minima(model), batch(), epochs=4, batch_size=16, lr=0.2, progress=told.append, report_every=0)
    assert [(each.epoch, each.step) for each in told] == [(epoch, step) for epoch in range(4) for step in range(3)]
    assert told[-1].share == 1.0
    assert all(0 <= each.t <= 1 and each.loss > 0 for each in told)
    assert told[0].learning_rate == 0.2
    assert told[-1].learning_rate == pytest.approx(0.2 * piecewise_linear(11 / 12))


def test_every_epoch_has_the_mean_loss_of_its_steps_and_the_way_of_each_bend() -> None:
    model = convolutional()
    told: list[FittingProgress] = []
    ends = two_minima(model)
    curve = fit_curve(
        model, *ends, batch(), bends=2, epochs=4, batch_size=16, lr=0.2, progress=told.append, report_every=0
    )
    history = told[-1].history
    assert [epoch.epoch for epoch in history] == [1, 2, 3, 4]
    for index, epoch in enumerate(history):
        assert epoch.loss == pytest.approx(np.mean([step.loss for step in told if step.epoch == index]))
    for bend, distance, t in zip(curve.bends, history[-1].bends, (1 / 3, 2 / 3), strict=True):
        start = (1 - t) * ends[0] + t * ends[1]
        assert distance == pytest.approx(float(torch.linalg.vector_norm(bend - start)), rel=1e-5)


def test_each_epoch_is_reported_even_if_reports_are_rare() -> None:
    model = convolutional()
    told: list[FittingProgress] = []
    fit_curve(model, *two_minima(model), batch(), epochs=4, batch_size=16, progress=told.append, report_every=1e9)
    assert [len(step.history) for step in told if step.history] == [1, 2, 3, 4]


class Interrupted(Exception):
    pass


def interrupt_at(share: float) -> Callable[[FittingProgress], None]:
    def told(progress: FittingProgress) -> None:
        if progress.share >= share:
            raise Interrupted

    return told


@pytest.mark.parametrize("share", [0.1, 0.5, 0.77])
def test_an_interrupted_fit_goes_on_to_the_same_bends(tmp_path: Path, share: float) -> None:
    model, data = with_noise(), batch(dtype=torch.float32)
    ends = two_minima(model)
    options = {"bends": 2, "epochs": 5, "batch_size": 8, "weight_decay": 1e-3, "state_path": tmp_path / "fit"}
    uninterrupted: list[FittingProgress] = []
    whole = fit_curve(model, *ends, data, progress=uninterrupted.append, **{**options, "state_path": None})  # type: ignore[arg-type]
    with pytest.raises(Interrupted):
        fit_curve(model, *ends, data, save_every=0, progress=interrupt_at(share), report_every=0, **options)  # type: ignore[arg-type]
    steps: list[FittingProgress] = []
    resumed = fit_curve(model, *ends, data, progress=steps.append, report_every=0, **options)  # type: ignore[arg-type]
    assert len(steps) < 25
    assert steps[-1].history == uninterrupted[-1].history, "the losses of its first part are kept"
    assert torch.equal(whole.points, resumed.points)
    again = fit_curve(model, *ends, data, progress=interrupt_at(0), report_every=0, **options)  # type: ignore[arg-type]
    assert torch.equal(whole.points, again.points)


def test_a_fit_killed_by_the_system_goes_on_to_the_same_bends(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        import torch
        torch.set_num_threads(1)
        from valleyscope.landscape.fitting.fit_curve import fit_curve
        model, start, end, data = torch.load(sys.argv[1], weights_only=False)
        def told(progress):
            if progress.share > 0.6:
                os.kill(os.getpid(), signal.SIGKILL)
        fit_curve(model, start, end, data, epochs=6, batch_size=8, state_path=sys.argv[2], save_every=0, progress=told,
                  report_every=0)
    """
    model, data = with_noise(), batch(dtype=torch.float32)
    start, end = two_minima(model)
    torch.save((model, start, end, data), tmp_path / "inputs")
    state = tmp_path / "state"
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "inputs"), str(state)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        steps: list[FittingProgress] = []
        resumed = fit_curve(
            model, start, end, data, epochs=6, batch_size=8, state_path=state, progress=steps.append, report_every=0
        )
        whole = fit_curve(model, start, end, data, epochs=6, batch_size=8)
    finally:
        torch.set_num_threads(threads)
    assert 0 < len(steps) < 15
    assert torch.equal(whole.points, resumed.points)


def test_batchnorm_uses_the_statistics_of_the_batch_while_fitting() -> None:
    model, (x, y) = with_noise(torch.float64), batch()
    model[3] = nn.Identity()
    start, end = two_minima(model)
    model[1].running_mean.fill_(1e6)  # type: ignore[union-attr, operator]
    fit = CurveFit(model.eval(), start, end, (x, y), FittingSettings(batch_size=40))
    done = fit.step(0, rate=0.1)
    plain = copy.deepcopy(model).train()
    vector_to_parameters(Bezier([start, (start + end) / 2, end]).point(done.t), plain.parameters())
    assert done.loss == pytest.approx(F.cross_entropy(plain(x), y).item(), rel=1e-10)


def test_cancelling_raises_saves_and_can_be_taken_up_again(tmp_path: Path) -> None:
    model, data = convolutional(), batch()
    ends = two_minima(model)
    asked = iter([False] * 5 + [True])
    with pytest.raises(Cancelled):
        fit_curve(
            model, *ends, data, epochs=4, batch_size=16, state_path=tmp_path / "fit", cancelled=lambda: next(asked)
        )
    steps: list[FittingProgress] = []
    resumed = fit_curve(
        model, *ends, data, epochs=4, batch_size=16, state_path=tmp_path / "fit", progress=steps.append, report_every=0
    )
    assert len(steps) == 7
    assert torch.equal(resumed.bend, fit_curve(model, *ends, data, epochs=4, batch_size=16).bend)


def test_state_of_another_fit_is_refused_by_what_differs(tmp_path: Path) -> None:
    model, (x, y) = convolutional(), batch()
    start, end = two_minima(model)
    path = tmp_path / "fit"
    fit_curve(model, start, end, (x, y), epochs=1, state_path=path)
    with pytest.raises(ValueError, match="another fit: epochs was 1, is 2"):
        fit_curve(model, start, end, (x, y), epochs=2, state_path=path)
    with pytest.raises(ValueError, match="another fit: data was"):
        fit_curve(model, start, end, (x + 1, y), epochs=1, state_path=path)
    with pytest.raises(ValueError, match="another fit: ends was"):
        fit_curve(model, end, start, (x, y), epochs=1, state_path=path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="not the state of a fit"):
        fit_curve(model, start, end, (x, y), epochs=1, state_path=path)


def test_divergence_is_named_with_epoch_step_and_rate() -> None:
    model = network_8x8()
    with pytest.raises(Diverged, match=r"epoch \d+, step \d+ .*learning rate 1e\+30.*lower lr"):
        fit_curve(model, *two_minima(model), batch(dtype=torch.float32), epochs=20, batch_size=8, lr=1e30)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "spline"),
        ("bends", 0),
        ("epochs", 0),
        ("batch_size", 0),
        ("lr", 0.0),
        ("lr", float("nan")),
        ("momentum", 1.0),
        ("weight_decay", -1.0),
        ("seed", -1),
    ],
)
def test_bad_settings_are_named_with_their_value(field: str, value: object) -> None:
    model = convolutional()
    with pytest.raises(ValueError, match=f"{'kind of curve' if field == 'kind' else field} is {value!r}"):
        fit_curve(model, *two_minima(model), batch(), **{field: value})  # type: ignore[arg-type]


def test_bad_ends_and_data_are_named() -> None:
    model, (x, y) = convolutional(), batch()
    start, end = two_minima(model)
    with pytest.raises(ValueError, match="end has shape"):
        fit_curve(model, start, end[1:], (x, y))
    with pytest.raises(ValueError, match=r"start: parameter '0.weight' has .* not finite"):
        fit_curve(model, {**unflatten(model, start), "0.weight": torch.full((4, 2, 3, 3), torch.nan)}, end, (x, y))
    with pytest.raises(ValueError, match=r"x of shape \(40, .*y of shape \(39,\)"):
        fit_curve(model, start, end, (x, y[1:]))
    with pytest.raises(ValueError, match=r"y of shape \(2, .*labels of shape \(N,\)"):
        fit_curve(model, start, end, (x, F.one_hot(y)))


def test_labels_beyond_the_classes_of_the_network_are_named() -> None:
    model, (x, y) = convolutional(), batch()
    with pytest.raises(ValueError, match="labels of split 'train' run from 2 to 6, but the network has 5 classes"):
        fit_curve(model, *two_minima(model), (x, y + 2))


def test_data_may_be_arrays_or_splits() -> None:
    model, (x, y) = convolutional(), batch()
    ends = two_minima(model)
    expected = fit_curve(model, *ends, (x, y), epochs=1, batch_size=16).bend
    forms: list[Any] = [(x.numpy(), y.numpy()), {"train": (x, y), "test": (x[:1], y[:1])}, [x, y]]
    for data in forms:
        assert torch.equal(fit_curve(model, *ends, data, epochs=1, batch_size=16).bend, expected)
    with pytest.raises(ValueError, match="data has the splits 'test'; a curve is fitted on 'train'"):
        fit_curve(model, *ends, {"test": (x, y)})
    with pytest.raises(ValueError, match=r"split 'train' is not a pair \(x, y\) of tensors"):
        fit_curve(model, *ends, "digits")  # type: ignore[arg-type]


def test_a_caller_without_gradients_gets_the_same_curve() -> None:
    model, (x, y) = with_noise(), batch(dtype=torch.float32)
    start, end = two_minima(model)
    expected = fit_curve(model, start, end, (x, y), epochs=2, batch_size=16)
    with torch.inference_mode():
        inside = fit_curve(
            copy.deepcopy(model), start.clone(), end.clone(), (x.clone(), y.clone()), epochs=2, batch_size=16
        )
    with torch.no_grad():
        without = fit_curve(model, start, end, (x, y), epochs=2, batch_size=16)
    assert torch.equal(inside.points, expected.points)
    assert torch.equal(without.points, expected.points)


def test_data_of_other_types_is_brought_into_the_type_of_the_network() -> None:
    model, (x, y) = convolutional(), batch()
    ends = two_minima(model)
    rounded = x.float()
    expected = fit_curve(model, *ends, (rounded.double(), y), epochs=1)
    assert torch.equal(expected.bend, fit_curve(model, *ends, (rounded, y.to(torch.uint8)), epochs=1).bend)


def test_parameters_of_several_data_types_are_refused() -> None:
    model = convolutional()
    model[0].float()
    with pytest.raises(ValueError, match="several data types or devices"):
        fit_curve(model, flatten(model), flatten(model), batch())


class Digits:
    """A small network on real digits, and minima that SGD finds for it."""

    def __init__(self) -> None:
        digits = load_digits()
        x = torch.tensor(digits.data, dtype=torch.float32)
        self.x, self.y = (x - x.mean()) / x.std(), torch.tensor(digits.target)
        self.model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))

    def minimum(self, seed: int) -> Tensor:
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(64, 24), nn.ReLU(), nn.Linear(24, 10))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(12):
            for chosen in torch.randperm(len(self.x)).split(64):
                optimizer.zero_grad()
                F.cross_entropy(model(self.x[chosen]), self.y[chosen]).backward()
                optimizer.step()
        return flatten(model)

    def highest(self, path: Curve) -> float:
        """Largest loss at 31 points of a path, evaluated the plain way."""
        losses = []
        with torch.no_grad():
            for t in np.linspace(0, 1, 31):
                vector_to_parameters(path.point(t), self.model.parameters())
                losses.append(F.cross_entropy(self.model(self.x), self.y).item())
        return max(losses)


def test_bezier_between_unrelated_minima_lowers_the_highest_loss_fivefold() -> None:
    digits = Digits()
    start, end = digits.minimum(0), digits.minimum(1)
    straight = digits.highest(line(start, end))
    curve = fit_curve(digits.model, start, end, (digits.x, digits.y), epochs=20, batch_size=64, lr=0.1)
    assert straight > 0.3
    assert digits.highest(curve) < straight / 5
