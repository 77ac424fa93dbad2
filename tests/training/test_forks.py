"""A run that forks from another one's epoch: what it shares with its trunk, and where it goes its own way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.test_resume import network, records
from valleyscope.training import Cancelled, Training, build_model, load_dataset, train
from valleyscope.training.checkpoints import BadCheckpoint
from valleyscope.training.fork_points import NoForkPoint
from valleyscope.training.outcomes import Trained
from valleyscope.training.thresholds import accumulated_threshold

SGD: dict[str, Any] = {
    "epochs": 4,
    "batch_size": 96,
    "lr": 0.02,
    "momentum": 0.9,
    "augment": True,
    "schedule": {"kind": "halving", "every": 2},
}
FORK = {"from": "sgd", "epoch": 2}
STEPS = 15  # of an epoch of digits with this batch size


def trunk(directory: Path, **changes: Any) -> Trained:
    return train(network(), load_dataset("digits"), directory=directory, keep=[1, 2], **SGD | changes)


def fork(trunk_directory: Path, **changes: Any) -> Trained:
    return train(network(), load_dataset("digits"), trunk=trunk_directory, **SGD | {"fork": FORK} | changes)


def weights(model: nn.Module) -> torch.Tensor:
    return torch.cat([tensor.flatten().double() for tensor in model.state_dict().values()])


@pytest.mark.parametrize("method", [{}, {"optimizer": "altsdp", "mode": "dual", "target": 0.8}])
def test_a_fork_that_changes_nothing_is_its_trunk_bit_by_bit(tmp_path: Path, method: dict[str, Any]) -> None:
    one, two = trunk(tmp_path, **method), fork(tmp_path, **method)
    assert torch.equal(weights(one.model), weights(two.model))
    assert records(one) == records(two)


def test_a_fork_with_another_order_shares_the_first_epochs_only(tmp_path: Path) -> None:
    one, two = trunk(tmp_path), fork(tmp_path, seed=7)
    assert records(one)[:2] == records(two)[:2]
    assert [record.epoch for record in two.epochs] == [1, 2, 3, 4]
    assert one.final.learning_rate == two.final.learning_rate == SGD["lr"] / 2
    assert not torch.equal(weights(one.model), weights(two.model))


def test_altsdp_without_a_threshold_takes_over_the_momentum_of_sgd(tmp_path: Path) -> None:
    """AltSDP with c = 0 is SGD, bit for bit; a fork to it starts its method anew."""
    one, two = trunk(tmp_path), fork(tmp_path, optimizer="altsdp", c=0.0)
    assert torch.equal(weights(one.model), weights(two.model))


@pytest.mark.parametrize("mode", ["prox", "dual"])
def test_steps_count_from_the_start_of_the_trunk(tmp_path: Path, mode: str) -> None:
    """G = Σ g(n, γ_n) over the steps of the fork, with n of the whole run."""
    trunk(tmp_path)
    found = fork(tmp_path, optimizer="altsdp", c=1e-6, mode=mode)
    rates = [SGD["lr"] / 2] * (2 * STEPS)
    expected = accumulated_threshold(rates, 1e-6, 0.51, mode=mode, momentum=0.9, before=2 * STEPS)  # type: ignore[arg-type]
    assert found.final.threshold == pytest.approx(expected, rel=1e-9)
    later, whole = (accumulated_threshold([0.1] * n, 1.0, 0.51, before=m) for n, m in ((30, 20), (50, 0)))
    assert later + accumulated_threshold([0.1] * 20, 1.0, 0.51) == pytest.approx(whole)


def test_a_target_is_what_the_fork_itself_accumulates(tmp_path: Path) -> None:
    trunk(tmp_path)
    found = fork(tmp_path, optimizer="altsdp", target=0.3)
    assert found.final.threshold == pytest.approx(0.3)
    assert found.forecast is not None
    assert found.forecast.reach == pytest.approx(0.3)


def test_a_fork_at_epoch_0_shares_the_initialisation_only() -> None:
    data = load_dataset("digits")
    one = train(network(), data, **SGD | {"epochs": 1, "seed": 3})
    two = train(network(), data, **SGD | {"epochs": 1, "seed": 3, "fork": {"from": "sgd", "epoch": 0}})
    assert torch.equal(weights(one.model), weights(two.model))


def test_a_cancelled_fork_goes_on_where_it_stopped(tmp_path: Path) -> None:
    trunk(tmp_path / "trunk")
    asked = iter(range(10**9))
    own = {"directory": tmp_path / "fork", "optimizer": "altsdp", "target": 0.8}
    with pytest.raises(Cancelled):
        fork(tmp_path / "trunk", cancelled=lambda: next(asked) > STEPS, **own)
    resumed, whole = (
        fork(tmp_path / "trunk", **own | {"directory": directory}) for directory in (tmp_path / "fork", None)
    )
    assert torch.equal(weights(resumed.model), weights(whole.model))
    assert records(resumed) == records(whole)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"fork": FORK, "of": "b", "method": "one-shot", "sparsity": 0.5}, "both say where to start"),
        ({"fork": {"from": "a", "epoch": -1}}, "greater than or equal to 0"),
    ],
)
def test_wrong_forks_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Training(**{**SGD, **fields})


def test_a_fork_needs_the_state_that_its_trunk_kept(tmp_path: Path) -> None:
    data = load_dataset("digits")
    with pytest.raises(ValueError, match="leaves nothing to train with epochs=4"):
        fork(tmp_path, fork={"from": "sgd", "epoch": 4})
    with pytest.raises(ValueError, match="give trunk, the directory"):
        train(network(), data, fork=FORK)
    with pytest.raises(ValueError, match="give fork, too"):
        train(network(), data, trunk=tmp_path)
    with pytest.raises(ValueError, match="give directory, too"):
        train(network(), data, keep=[1])
    with pytest.raises(ValueError, match=r"keep=\[0, 5\]: this run trains the epochs 1 to 4"):
        train(network(), data, directory=tmp_path, keep=[0, 1, 5], **SGD)
    with pytest.raises(NoForkPoint, match=r"fork-000002.pt does not exist: train the trunk with .* keep=\[2\]"):
        fork(tmp_path)
    (tmp_path / "checkpoint").write_bytes(b"weights")
    with pytest.raises(NoForkPoint, match="is a file: a checkpoint has no epochs to fork from"):
        fork(tmp_path / "checkpoint")
    (tmp_path / "fork-000002.pt").write_bytes(b"torn")
    with pytest.raises(NoForkPoint, match=r"fork-000003.pt does not exist \(the trunk kept the epochs 2\)"):
        fork(tmp_path, fork={"from": "sgd", "epoch": 3})
    with pytest.raises(NoForkPoint, match="cannot be read"):
        fork(tmp_path)


def test_a_fork_into_another_architecture_is_refused(tmp_path: Path) -> None:
    trunk(tmp_path, epochs=2)
    data = load_dataset("digits")
    with pytest.raises(BadCheckpoint, match=r"fork-000002.pt does not fit Sequential: .* is missing"):
        train(build_model("mlp", data), data, trunk=tmp_path, **SGD | {"fork": FORK})
