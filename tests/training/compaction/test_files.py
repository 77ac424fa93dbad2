"""Compact networks in files: the same network comes back, in torch and in other programs; files cannot run code."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

from tests.training.compaction.networks import SMALL, with_zero_groups
from valleyscope import (
    Compact,
    NotCompactable,
    build_model,
    compact,
    export_onnx,
    export_program,
    load_compact,
    save_checkpoint,
    save_compact,
)
from valleyscope.training.checkpoints import BadCheckpoint
from valleyscope.training.compaction import exports
from valleyscope.training.compaction.latency import latencies
from valleyscope.training.models.registry import describe_models


@pytest.fixture(scope="module")
def residual() -> tuple[nn.Module, Compact]:
    """A residual network with weights-only zero groups: it has maps, pads and additions of parts."""
    model = build_model("resnet56", depth=8, width=4, input_shape=(3, 8, 8), seed=0)
    with_zero_groups(model, bias=False)
    return model, compact(model, torch.zeros(1, 3, 8, 8))


def test_a_saved_network_is_loaded_bit_by_bit(residual: tuple[nn.Module, Compact], tmp_path: Path) -> None:
    _, found = residual
    save_compact(tmp_path / "a.safetensors", found, spec={"model": "resnet56"})
    loaded = load_compact(tmp_path / "a.safetensors")
    x = torch.randn(4, 3, 8, 8)
    assert torch.equal(loaded(x), found.model(x))
    with safe_open(str(tmp_path / "a.safetensors"), framework="pt") as file:
        metadata = file.metadata()
    widths = {layer["name"]: layer["outputs"] for layer in json.loads(metadata["report"])["layers"]}
    assert widths["conv"][1] == loaded.get_submodule("conv").out_channels < widths["conv"][0]
    assert json.loads(metadata["spec"]) == {"model": "resnet56"}


@pytest.mark.parametrize("name", ["cnn", "vgg16", "wrn28x10"])
def test_other_models_are_loaded_bit_by_bit(name: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"vgg16": {"width": 2}, "wrn28x10": {"depth": 10, "widen": 1, "dropout": 0.3}}.get(
        name, {}
    )
    shape = (1, 8, 8) if name == "cnn" else (3, 32, 32)
    found = compact(with_zero_groups(build_model(name, seed=0, **options)), torch.zeros(1, *shape))
    save_compact(tmp_path / "a.safetensors", found)
    x = torch.randn(2, *shape)
    assert torch.equal(load_compact(tmp_path / "a.safetensors")(x), found.model(x))


def test_an_exported_program_computes_the_same(residual: tuple[nn.Module, Compact], tmp_path: Path) -> None:
    model, found = residual
    export_program(tmp_path / "a.pt2", found)
    program = torch.export.load(tmp_path / "a.pt2").module()
    for samples in (1, 5):
        x = torch.randn(samples, 3, 8, 8)
        torch.testing.assert_close(program(x), model(x), rtol=1e-4, atol=1e-4)


def assert_onnx_computes(model: nn.Module, found: Compact, path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export_onnx(path, found)
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for samples in (1, 5):
        x = torch.randn(samples, *found.example[0].shape[1:])
        expected = model(x).detach().numpy()
        (output,) = session.run(["output"], {"input": x.numpy()})
        assert np.abs(output - expected).max() <= 1e-4 * np.abs(expected).max()


def test_onnxruntime_computes_the_same(residual: tuple[nn.Module, Compact], tmp_path: Path) -> None:
    assert_onnx_computes(*residual, tmp_path / "a.onnx")


@pytest.mark.drill
@pytest.mark.parametrize("name", [*describe_models(), "torchvision:resnet18"])
def test_onnxruntime_computes_the_same_for_every_model(name: str, tmp_path: Path) -> None:
    shape = describe_models()[name].input_shape if name in describe_models() else (3, 64, 64)
    model = with_zero_groups(build_model(name, input_shape=shape, classes=10, seed=1, **SMALL.get(name, {})))
    assert_onnx_computes(model, compact(model, torch.zeros(1, *shape)), tmp_path / "a.onnx")


def test_onnx_without_its_packages_says_what_to_install(
    residual: tuple[nn.Module, Compact], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "_ONNX_PACKAGES", ("no_such_package",))
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'valleyscope\[onnx\]'"):
        export_onnx(tmp_path / "a.onnx", residual[1])


def test_a_file_can_name_only_functions_of_tensors(residual: tuple[nn.Module, Compact], tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    save_compact(path, residual[1])
    with safe_open(str(path), framework="pt") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    harmful = (
        {"name": "a", "op": "call_function", "target": "torch.load", "args": ["x"], "kwargs": {}},
        {"name": "a", "op": "call_function", "target": "os.system", "args": ["x"], "kwargs": {}},
        {"name": "a", "op": "call_method", "target": "__class__", "args": [], "kwargs": {}},
        {"name": "a=print(1)", "op": "placeholder", "target": "x", "args": [], "kwargs": {}},
        {"name": "a", "op": "placeholder", "target": "x=print(1)", "args": [], "kwargs": {}},
        {"name": "a", "op": "call_module", "target": "conv.__init__.__globals__", "args": [], "kwargs": {}},
    )
    for node in harmful:
        graph = json.loads(metadata["graph"])
        graph["nodes"].insert(1, node)
        save_file(tensors, path, metadata | {"graph": json.dumps(graph)})
        with pytest.raises(BadCheckpoint, match="does not describe a network"):
            load_compact(path)
    graph = json.loads(metadata["graph"])
    graph["modules"]["conv"]["class"] = "DataParallel"
    save_file(tensors, path, metadata | {"graph": json.dumps(graph)})
    with pytest.raises(BadCheckpoint, match="does not describe a network"):
        load_compact(path)


def test_other_files_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"compact network .* does not exist"):
        load_compact(tmp_path / "a.safetensors")
    save_checkpoint(tmp_path / "b.safetensors", nn.Linear(2, 2))
    with pytest.raises(BadCheckpoint, match=r"is not a compact network .*: use load_checkpoint"):
        load_compact(tmp_path / "b.safetensors")


class _Own(nn.Conv2d):
    pass


def test_a_layer_that_a_file_cannot_describe_is_named(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.LayerNorm([2, 4, 4]), nn.Flatten(), nn.Linear(32, 2))
    found = compact(model, torch.zeros(1, 1, 6, 6))
    save_compact(tmp_path / "a.safetensors", found)
    x = torch.randn(2, 1, 6, 6)
    assert torch.equal(load_compact(tmp_path / "a.safetensors")(x), found.model(x))
    attention = nn.Sequential(
        nn.Linear(4, 4), nn.Unflatten(1, (2, 2)), nn.TransformerEncoderLayer(2, 1, 4), nn.Flatten()
    )
    with pytest.raises(NotCompactable, match="layer '2' "):
        save_compact(tmp_path / "b.safetensors", compact(attention, torch.zeros(1, 4)))


def test_latency_leaves_threads_and_modes_as_they_were(residual: tuple[nn.Module, Compact]) -> None:
    model, found = residual
    threads = torch.get_num_threads()
    model.train()
    before, after = latencies([model, found.model], found.example, 4, seconds=0.0, least=3)
    assert 0 < before.low <= before.median <= before.high
    assert 0 < after.low <= after.median <= after.high
    assert (torch.get_num_threads(), model.training) == (threads, True)
    model.eval()
