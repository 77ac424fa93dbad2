"""Checkpoints: what goes in comes out, and what does not fit is named."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from valleyscope.training.checkpoints import BadCheckpoint, load_checkpoint, read_checkpoint, save_checkpoint


def network(width: int = 4) -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.Flatten(), nn.Linear(width * 36, 2))


def test_weights_spec_and_metrics_survive_to_the_bit(tmp_path: Path) -> None:
    model = network().to(memory_format=torch.channels_last)
    save_checkpoint(tmp_path / "a.safetensors", model, spec={"lr": 0.1}, metrics={"epochs": [1, 2]})
    other = network()
    found = load_checkpoint(tmp_path / "a.safetensors", other)
    assert (found.spec, found.metrics) == ({"lr": 0.1}, {"epochs": [1, 2]})
    assert found.versions["torch"] == torch.__version__
    assert all(torch.equal(a, b) for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True))


def test_tied_weights_can_be_saved(tmp_path: Path) -> None:
    model = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    model[1].weight = model[0].weight
    save_checkpoint(tmp_path / "tied.safetensors", model)
    load_checkpoint(tmp_path / "tied.safetensors", model)


def test_a_strangers_file_without_metadata_is_read(tmp_path: Path) -> None:
    model = network()
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, tmp_path / "b.safetensors")
    assert load_checkpoint(tmp_path / "b.safetensors", network()).spec == {}


def test_other_shapes_missing_and_foreign_names_are_all_said(tmp_path: Path) -> None:
    state = network(5).state_dict()
    state["extra"] = torch.zeros(1)
    del state["3.bias"]
    save_checkpoint(tmp_path / "c.safetensors", state)
    with pytest.raises(BadCheckpoint) as refused:
        load_checkpoint(tmp_path / "c.safetensors", network(4))
    said = str(refused.value)
    for words in ("3.bias is missing", "extra is not part", "(5, 1, 3, 3)", "(4, 1, 3, 3)", "c.safetensors"):
        assert words in said


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    state = network().state_dict()
    state["3.weight"] = torch.full_like(state["3.weight"], torch.nan)
    save_checkpoint(tmp_path / "nan.safetensors", state)
    with pytest.raises(BadCheckpoint, match=r"3\.weight has values that are not finite"):
        load_checkpoint(tmp_path / "nan.safetensors", network())


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", pickle.dumps({"a": 1}), b"\xff" * 4096])
def test_files_of_another_kind_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.safetensors").write_bytes(content)
    with pytest.raises(BadCheckpoint, match="not a readable safetensors file"):
        read_checkpoint(tmp_path / "x.safetensors")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.safetensors"
    save_checkpoint(path, network())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(BadCheckpoint):
        read_checkpoint(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"none\.safetensors"):
        read_checkpoint(tmp_path / "none.safetensors")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_checkpoint(path, network(), spec={"first": True})
    with pytest.raises(TypeError):
        save_checkpoint(path, network(), spec={"not JSON": object()})
    assert read_checkpoint(path).spec == {"first": True}
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.safetensors"]
