"""The training loop: what it records, what it refuses, and what it leaves alone."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from valleyscope.training import Diverged, Training, build_model, load_dataset, sparsity, train
from valleyscope.training.checkpoints import read_checkpoint
from valleyscope.training.datasets import Dataset
from valleyscope.training.outcomes import Progress


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load_dataset("digits")


def small(data: Dataset, seed: int = 0) -> nn.Module:
    return build_model("cnn", data, channels=[4, 8], hidden=16, seed=seed)


def images(classes: int = 3, samples: int = 48) -> Dataset:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 3, 16, 16, generator=generator)
    y = torch.randint(classes, (samples,), generator=generator)
    return Dataset("images", x, y, x[:12], y[:12], classes, "fingerprint", (0.0, 0.0, 0.0), augmented=True)


def weights(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_the_last_record_is_that_of_the_trained_network(data: Dataset) -> None:
    model = small(data)
    result = train(model, data, epochs=3, batch_size=64, optimizer="altsdp", target=0.5)
    model.eval()
    with torch.no_grad():
        for x, y, loss, accuracy in (
            (data.x_train, data.y_train, result.final.train_loss, result.final.train_accuracy),
            (data.x_test, data.y_test, result.final.test_loss, result.final.test_accuracy),
        ):
            logits = model(x).double()
            assert loss == pytest.approx(float(nn.functional.cross_entropy(logits, y)), rel=1e-5)
            assert accuracy == float((logits.argmax(1) == y).double().mean())
    assert result.final.sparsity == sparsity(model).parameters
    assert result.final.zero_groups == sparsity(model).groups
    assert result.final.threshold == pytest.approx(0.5)
    assert [epoch.epoch for epoch in result.epochs] == [1, 2, 3]
    assert result.epochs[0].threshold < result.epochs[1].threshold
    assert result.final.seconds >= result.epochs[0].seconds > 0


def test_progress_has_the_forecast_first_and_a_record_for_each_epoch(data: Dataset) -> None:
    seen: list[Progress] = []
    train(small(data), data, epochs=2, batch_size=64, optimizer="altsdp", c=1e-5, progress=seen.append, report_every=0)
    assert seen[0].forecast is not None
    assert [progress.record.epoch for progress in seen if progress.record is not None] == [1, 2]
    shares = [progress.share for progress in seen]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_a_threshold_below_all_norms_is_warned_of(data: Dataset, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        result = train(small(data), data, epochs=1, batch_size=64, optimizer="altsdp", c=1e-9)
    assert result.forecast is not None
    assert not result.forecast.prunes
    assert "nothing will be pruned" in caplog.text
    assert f"{result.forecast.smallest:.4g}" in caplog.text
    assert f"{result.forecast.median:.4g}" in caplog.text


def test_seeds_of_initialisation_order_and_augmentation_are_separate() -> None:
    data = images()

    def end(seed: int = 0, **fields: int) -> Tensor:
        model = build_model("cnn", data, channels=[2, 3], hidden=4, seed=seed)
        train(model, data, epochs=2, batch_size=16, lr=0.01, **fields)
        return weights(model)

    base = end()
    assert torch.equal(base, end(order_seed=0, augment_seed=0))
    assert torch.equal(base, end(init_seed=7))  # the initialisation is build_model's business
    assert not torch.equal(base, end(order_seed=1))
    assert not torch.equal(base, end(augment_seed=1))
    assert not torch.equal(base, end(seed=1))


def test_augmentation_is_never_used_in_evaluation() -> None:
    data = images()
    model = build_model("cnn", data, channels=[2, 3], hidden=4, seed=0)
    before = weights(model)
    result = train(model, data, epochs=1, batch_size=48, lr=1e-12)
    assert torch.allclose(before, weights(model), atol=1e-9)
    loss = float(nn.functional.cross_entropy(model(data.x_train), data.y_train).detach())
    assert result.final.train_loss == pytest.approx(loss, rel=1e-5)


def test_the_callers_random_numbers_are_left_alone(data: Dataset) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(64, 10))
    torch.manual_seed(11)
    expected = torch.rand(3)
    torch.manual_seed(11)
    train(model, data, epochs=1, batch_size=256)
    assert torch.equal(torch.rand(3), expected)


def test_divergence_is_an_error_that_keeps_the_last_good_weights(data: Dataset, tmp_path: Path) -> None:
    schedule = {"kind": "milestones", "at": [2], "factors": [1e8]}
    with pytest.raises(Diverged, match=r"epoch 3.*Lower lr.*last-good\.safetensors"):
        train(small(data), data, epochs=5, batch_size=64, lr=0.05, schedule=schedule, directory=tmp_path)
    kept = read_checkpoint(tmp_path / "last-good.safetensors")
    assert all(tensor.isfinite().all() for tensor in kept.state.values())
    reference = small(data)
    train(reference, data, epochs=2, batch_size=64, lr=0.05)
    assert all(torch.equal(kept.state[name], tensor) for name, tensor in reference.state_dict().items())


def test_snapshots_are_kept_as_often_as_asked(data: Dataset, tmp_path: Path) -> None:
    trained = train(small(data), data, epochs=5, batch_size=256, snapshots=2, directory=tmp_path)
    assert trained.settings.snapshot_count == 3
    assert sorted(path.name for path in tmp_path.glob("snapshot-*")) == [
        f"snapshot-{epoch:06d}.safetensors" for epoch in (2, 4, 5)
    ]


def test_both_sets_are_measured_as_often_as_asked_and_weights_stay_the_same(data: Dataset) -> None:
    fields = {"epochs": 5, "batch_size": 256, "method": "one-shot", "sparsity": 0.5}
    seldom, often = small(data), small(data)
    retrain = {"epochs": 3, "lr": 0.05}
    found = train(seldom, data, measure_every=2, retrain=retrain, **fields)
    expected = train(often, data, retrain=retrain, **fields)
    assert [epoch.epoch for epoch in found.epochs] == [2, 4, 5, 6, 8]
    losses = {epoch.epoch: epoch.train_loss for epoch in expected.epochs}
    assert all(epoch.train_loss == losses[epoch.epoch] for epoch in found.epochs)
    assert found.pruning == expected.pruning
    assert all(torch.equal(a, b) for a, b in zip(weights(seldom), weights(often), strict=True))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"batch_size": 2000}, r"batch_size=2000 .*1437"),
        ({"lr": -1.0}, "lr"),
        ({"lr": math.inf}, "lr"),
        ({"c": math.nan, "optimizer": "altsdp"}, "c\n"),
        ({"mu": -0.1, "optimizer": "altsdp"}, "mu"),
        ({"optimizer": "adam"}, "optimizer"),
        ({"structure": "block"}, "structure"),
        ({"epochs": 0}, "epochs"),
        ({"colour": 1}, "colour"),
    ],
)
def test_bad_settings_are_refused_before_any_work(data: Dataset, fields: dict[str, object], words: str) -> None:
    model = small(data)
    before = weights(model)
    with pytest.raises(ValueError, match=words):
        train(model, data, **fields)  # type: ignore[arg-type]
    assert torch.equal(before, weights(model))


def test_a_network_that_does_not_fit_the_data_is_refused(data: Dataset) -> None:
    with pytest.raises(ValueError, match=r"does not take the inputs of data set digits, shape \(1, 8, 8\)"):
        train(nn.Sequential(nn.Conv2d(3, 4, 3)), data, epochs=1)
    with pytest.raises(ValueError, match="10 classes"):
        train(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), data, epochs=1)


class Viewing(nn.Module):
    """Cuts images by `view`, as PyTorch's first MNIST example does."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Conv2d(1, 4, 3)
        self.last = nn.Linear(144, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layer(x).relu().view(x.size(0), -1))


def test_a_network_that_views_images_is_trained_like_one_that_flattens_them(data: Dataset) -> None:
    class Flattening(Viewing):
        def forward(self, x: Tensor) -> Tensor:
            return self.last(self.layer(x).relu().flatten(1))

    models = Viewing(), Flattening()
    for model in models:
        train(model, data, epochs=2, batch_size=64)
    torch.testing.assert_close(weights(models[0]), weights(models[1]), rtol=1e-3, atol=1e-4)
    models[0](data.x_test)


def test_a_last_batch_of_one_is_refused_for_batch_norm(data: Dataset) -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, 10))
    single = replace(data, x_train=data.x_train[:65], y_train=data.y_train[:65])
    with pytest.raises(ValueError, match="last batch of one sample"):
        train(model, single, epochs=1, batch_size=32)


def test_the_number_of_snapshots_is_known_before_the_run() -> None:
    for epochs in (1, 2, 5, 6, 120):
        for snapshots in (0, 1, 2, 3, 119, 120, 1000):
            run = Training(epochs=epochs, snapshots=snapshots)
            assert run.snapshot_count == sum(map(run.keeps_snapshot_of, range(1, epochs + 1)))


def test_settings_come_whole_or_by_field(data: Dataset) -> None:
    from valleyscope.training import Training

    with pytest.raises(ValueError, match="not both"):
        train(small(data), data, Training(epochs=1), epochs=1)
