"""Filters that a residual addition joins are one group."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from valleyscope.training import AltSDP, build_model, partition, sparsity
from valleyscope.training.parameter_groups import group_norms, prunable
from valleyscope.training.thresholds import threshold


def _resnet() -> nn.Module:
    return build_model("resnet56", depth=8, width=4, input_shape=(3, 8, 8), seed=0)


def _members(model: nn.Module, channel: int) -> list[Tensor]:
    """All parameters that write to a channel of the last stage of 16, by hand: stages have 4, 8 and 16 channels."""
    found = []
    for conv, norm, offset in (
        ("conv", "norm", 6),
        *((f"block{s}_1.conv2", f"block{s}_1.norm2", o) for s, o in ((1, 6), (2, 4), (3, 0))),
    ):
        layer, follows = model.get_submodule(conv), model.get_submodule(norm)
        row = channel - offset
        if 0 <= row < len(layer.weight):
            found += [layer.weight[row], follows.weight[row], follows.bias[row]]
    return found


def test_a_tied_group_has_all_filters_that_write_to_one_channel() -> None:
    model = _resnet()
    groups = partition(model, tie_residual=True)
    tied = next(group for group in groups if "offsets" in group)
    expected = [torch.cat([part.flatten() for part in _members(model, channel)]).norm() for channel in range(16)]
    torch.testing.assert_close(group_norms(tied), torch.stack(expected).detach())
    assert sum(len(group["params"]) for group in groups) == len(list(model.parameters()))


@pytest.mark.parametrize("mode", ["prox", "dual", "cumulative"])
@pytest.mark.parametrize("floor", [0.0, 0.5])
def test_altsdp_shrinks_a_tied_group_as_one_vector(mode: str, floor: float) -> None:
    model = _resnet()
    before = [torch.cat([part.detach().flatten() for part in _members(model, c)]).clone() for c in range(16)]
    median = float(torch.stack([u.norm() for u in before]).median())
    c = median / threshold(1, 0.1, 1.0, 0.5)
    optimizer = AltSDP(partition(model, tie_residual=True), lr=0.1, c=c, mu=0.5, mode=mode, floor=floor)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    after = [torch.cat([part.detach().flatten() for part in _members(model, c)]) for c in range(16)]
    if floor == 0:
        for u, w in zip(before, after, strict=True):
            torch.testing.assert_close(w, u * (1 - median / u.norm()).clamp_min(0))
        assert sum(not w.any() for w in after) >= 7
    assert sum(bool(w.any()) for w in after) >= 16 * floor


def test_tied_zero_groups_are_counted_and_stay_zero() -> None:
    model = _resnet()
    groups = partition(model, tie_residual=True)
    for group in prunable(groups):
        if "offsets" in group:
            for parameter, offset in zip(group["params"], group["offsets"], strict=True):
                parameter.data[: max(0, 8 - offset)] = 0
    tied = next(layer for layer in sparsity(groups).layers if "tied" in layer.name)
    assert (tied.groups, tied.zero_groups) == (16, 8)
    optimizer = AltSDP(groups, lr=0.1, c=0.0, momentum=0.9, sparsity=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 3, 8, 8)).square().mean().backward()
        for group in prunable(groups):
            for parameter, offset in zip(group["params"], group.get("offsets", [99] * 9), strict=False):
                if optimizer.param_groups[0]["ended"] == 0:
                    parameter.grad[: max(0, 8 - offset)] = 0
        optimizer.step()
    assert optimizer.param_groups[0]["ended"] == 1
    assert next(layer for layer in sparsity(groups).layers if "tied" in layer.name).zero_groups == 8


def test_tying_needs_filters_and_a_traceable_network() -> None:
    with pytest.raises(ValueError, match="tie_residual=True ties filters"):
        partition(_resnet(), "kernel", tie_residual=True)

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x) if x.sum() > 0 else x

    with pytest.raises(ValueError, match="tie_residual=True: Branches cannot be traced"):
        partition(Branches(), tie_residual=True)
