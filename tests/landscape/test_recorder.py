"""Snapshots of a training of one's own, and the common plane of several runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from valleyscope import Recorder, flatten, surface, trajectories
from valleyscope.landscape.recorder import about_snapshot, snapshots_in


def trained(folder: Path, seed: int) -> tuple[Recorder, list[torch.Tensor]]:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
        x = torch.randn(40, 3)
    recorder = Recorder(model, folder, every=2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    weights = []
    for step in range(9):
        nn.functional.mse_loss(model(x), x[:, :1]).backward()
        optimizer.step()
        optimizer.zero_grad()
        weights.append(flatten(model))
        recorder.record(step=step)
    return recorder, weights


def test_snapshots_are_the_weights_of_every_second_call(tmp_path: Path) -> None:
    recorder, weights = trained(tmp_path / "a", 0)
    files = recorder.snapshots()
    assert len(files) == 5
    for file, expected in zip(files, weights[::2], strict=True):
        assert torch.equal(flatten(recorder.model, file), expected)
    assert about_snapshot(files[1]) == {"call": "3", "step": "2"}
    Recorder(recorder.model, tmp_path / "a").record()
    assert len(snapshots_in(tmp_path / "a")) == 6


def test_several_runs_share_the_plane_of_their_leading_singular_vectors(tmp_path: Path) -> None:
    (first, one), (_, two) = trained(tmp_path / "a", 0), trained(tmp_path / "b", 1)
    found = first.trajectories(other=tmp_path / "b")
    offsets = (torch.stack([*one[::2], *two[::2]]) - one[-1]).double().numpy()
    left, sizes, _ = np.linalg.svd(offsets, full_matrices=False)
    np.testing.assert_allclose(found.plane.explained, (sizes[:2] ** 2 / (sizes**2).sum()), rtol=1e-5)
    projected = np.concatenate([found.paths["run"], found.paths["other"]])
    np.testing.assert_allclose(np.abs(projected), np.abs(left[:, :2] * sizes[:2]), atol=1e-5)
    distances = np.concatenate([found.distances["run"], found.distances["other"]])
    whole = (offsets**2).sum(axis=1)
    np.testing.assert_allclose(distances**2 + (projected**2).sum(axis=1), whole, atol=1e-6)
    x = torch.randn(20, 3)
    values = surface(first.model, found.plane, (x, x[:, :1]), resolution=5, loss="mse")
    figure = found.figure(values)
    names = [trace.name for trace in figure.data]
    assert {"trajectory:run", "trajectory:other"} <= set(names)
    assert f"{100 * found.plane.explained[0]:.1f} %" in figure.layout.xaxis.title.text
    assert len(found.figure().data) == 2


def test_a_folder_without_snapshots_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="run 'a': there are no snapshots"):
        trajectories(nn.Linear(2, 1), {"a": tmp_path})
