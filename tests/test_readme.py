"""What the README promises runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_python_example_runs_on_ones_own_network_and_loaders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    x = torch.randn(96, 1, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).long()
    for name in ("sgd", "pruned", "other-seed"):
        torch.save(trained_network(x, y).state_dict(), f"{name}.pt")
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    smaller = re.sub(r"resolution=41,\s+epochs=30", "resolution=5, epochs=2", code)
    assert smaller != code
    exec(smaller, {"model": network(), "train_loader": loader, "test_loader": loader})
    assert "from sgd to pruned" in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
    assert (tmp_path / "landscape.h5").is_file()


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(108, 2))


def trained_network(x: torch.Tensor, y: torch.Tensor) -> nn.Module:
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model


def test_every_file_that_the_readme_points_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parent.parent / target).exists(), target
