"""Every block of docs/own-networks.md runs as it stands there."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from valleyscope import compare

PAGE = (Path(__file__).parent.parent / "docs" / "own-networks.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"## ([^\n]+)\n.*?```python\n(.*?)```", PAGE, flags=re.DOTALL))
WRITTEN = {
    "Any task": ["surface.html"],
    "My training": ["trajectory.html", "run/snapshot-000003.safetensors"],
    "Adapters only": ["profile.html"],
    "Many networks": ["landscape.h5", "report.html", "comparison/valley.fit"],
    "The pruned network": [],
}


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def train_one_epoch(model: nn.Module, loader: Any) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()


@pytest.mark.parametrize("use", WRITTEN)
def test_the_use_runs_as_it_stands_on_the_page(use: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    x = torch.randn(48, 3)
    loader = DataLoader(TensorDataset(x, x[:, :1] * x[:, 1:2]), batch_size=16)
    model = network()
    first, second = copy.deepcopy(model), copy.deepcopy(model)
    train_one_epoch(first[2], [(first[:2](batch).detach(), y) for batch, y in loader])  # type: ignore[index]
    torch.save(network().state_dict(), "third.pt")
    if use == "Many networks":
        second = network()
    names = {"model": model, "first": first, "second": second, "loader": loader, "train_one_epoch": train_one_epoch}
    exec(BLOCKS[use], {**names, "torch": torch, "copy": copy})
    assert [name for name in WRITTEN[use] if not (tmp_path / name).is_file()] == []
    assert len(BLOCKS[use].strip().splitlines()) <= 12


def test_the_reading_example_of_the_format_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    x, model = torch.randn(20, 3), network()
    compare(model, {"a": model, "b": network()}, (x, x[:, :1]), loss="mse", resolution=3, epochs=1).save("landscape.h5")
    page = (Path(__file__).parent.parent / "docs" / "format.md").read_text(encoding="utf-8")
    exec(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)[0], {})
    assert capsys.readouterr().out.strip().endswith("True")


def test_the_page_has_the_five_uses() -> None:
    assert list(WRITTEN) == list(BLOCKS)
