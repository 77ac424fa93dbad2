"""AdamW and SAM in the training loop: as published, and resumed to the bit."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from tests.training.test_resume import network
from valleyscope.training import AllZero, Cancelled, load_dataset, train
from valleyscope.training.checkpoints import read_checkpoint
from valleyscope.training.sam import SAM

FIELDS: dict[str, dict[str, Any]] = {
    "adamw": {"optimizer": "adamw", "lr": 0.003, "betas": (0.8, 0.95), "weight_decay": 0.01},
    "sam": {"optimizer": "sam", "lr": 0.05, "momentum": 0.9, "rho": 0.1, "weight_decay": 1e-4},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_run_that_stops_anywhere_ends_with_the_same_bits(name: str, tmp_path: Path) -> None:
    fields = {**FIELDS[name], "epochs": 2, "batch_size": 128, "augment": True}
    digits = load_dataset("digits")
    undisturbed = network()
    train(undisturbed, digits, **fields)
    for stop in (3, 9, 7):
        checks = iter(range(1000))
        with pytest.raises(Cancelled):
            train(network(), digits, directory=tmp_path, cancelled=lambda: next(checks) == stop, **fields)  # noqa: B023
    resumed = network()
    train(resumed, digits, directory=tmp_path, **fields)
    for key, value in undisturbed.state_dict().items():
        assert torch.equal(resumed.state_dict()[key], value), key


def test_adamw_is_that_of_torch_in_a_plain_loop() -> None:
    digits = load_dataset("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    plain = copy.deepcopy(model)
    fields = {**FIELDS["adamw"], "epochs": 1, "batch_size": 1437, "schedule": {"kind": "constant"}}
    train(model, digits, **fields)
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.003, betas=(0.8, 0.95), weight_decay=0.01)
    cross_entropy(plain(digits.x_train), digits.y_train).backward()
    optimizer.step()
    for found, expected in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(found, expected)


def test_sam_steps_along_the_gradient_at_the_highest_point_of_a_ball_to_first_order() -> None:
    """Foret et al. 2021: w - lr grad L(w + rho g/||g||), computed by autograd on one flat vector in float64."""
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(20, 3, generator=generator).double(), torch.randn(20, 2, generator=generator).double()
    model = nn.Linear(3, 2).double()
    start = torch.cat([p.detach().flatten() for p in model.parameters()])

    def gradient(vector: torch.Tensor) -> torch.Tensor:
        w = vector.clone().requires_grad_(True)
        loss = (torch.nn.functional.linear(x, w[:6].view(2, 3), w[6:]) - y).square().mean()
        return torch.autograd.grad(loss, w)[0]

    g = gradient(start)
    expected = start - 0.1 * gradient(start + 0.3 * g / g.norm())
    optimizer = SAM(model.parameters(), lr=0.1, rho=0.3)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        return loss

    closure()
    optimizer.step(closure)
    torch.testing.assert_close(torch.cat([p.detach().flatten() for p in model.parameters()]), expected)
    with pytest.raises(ValueError, match=r"step\(closure\)"):
        optimizer.step()


def test_the_second_pass_of_sam_does_not_count_for_batch_norm() -> None:
    digits = load_dataset("digits")
    model = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(64), nn.Linear(64, 10))
    train(model, digits, **FIELDS["sam"], epochs=1, batch_size=1437)
    norm = model[1]
    assert isinstance(norm, nn.BatchNorm1d)
    assert int(norm.num_batches_tracked) == 1  # type: ignore[arg-type]
    torch.testing.assert_close(norm.running_mean, 0.1 * digits.x_train.flatten(1).mean(0))


def test_a_run_that_makes_every_group_zero_ends_with_an_error_and_keeps_the_weights_before(tmp_path: Path) -> None:
    digits = load_dataset("digits")
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 10))
    fields: dict[str, Any] = {"optimizer": "altsdp", "lr": 0.1, "batch_size": 256, "mode": "cumulative", "mu": 0.5}
    with pytest.raises(AllZero, match=r"all 8 prunable groups are zero after epoch \d.*lower c.*last-good.safetensors"):
        train(model, digits, **fields, epochs=20, c=0.1, directory=tmp_path)
    kept = read_checkpoint(tmp_path / "last-good.safetensors").state
    assert bool(kept["1.weight"].any())
    assert not model[1].weight.any()  # type: ignore[union-attr, operator]
