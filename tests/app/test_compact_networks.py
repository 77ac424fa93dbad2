"""Compact networks of an experiment: in its landscape, its report, its files, and by `valley compact`."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import torch

from tests.app.servers import Server
from valleyscope import build_model, load_compact, load_dataset
from valleyscope.app.cli import main
from valleyscope.app.experiments.plan import Kind, plan
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.training.checkpoints import load_checkpoint, read_checkpoint, save_checkpoint


def test_minima_that_may_have_zero_groups_are_made_compact() -> None:
    spec = parse_spec({"minima": {"sgd": {}, "pruned": {"optimizer": "altsdp"}, "given": {"checkpoint": "a"}}})
    assert [task.subject for task in plan(spec) if task.kind is Kind.COMPACT] == ["pruned", "given"]


def test_the_compact_network_of_a_run_computes_the_same(finished: Path) -> None:
    found = Landscape.open(finished / "landscape.h5").minima["altsdp"].compact
    assert found is not None
    assert found["smaller"]
    assert found["after"]["parameters"] < found["before"]["parameters"]
    assert set(found["latency"]) == {"1", "32"}
    checkpoint = read_checkpoint(finished / "altsdp.safetensors")
    data = load_dataset("digits")
    model = build_model(checkpoint.spec["model"], data)
    load_checkpoint(finished / "altsdp.safetensors", model)
    small = load_compact(finished / "altsdp.compact.safetensors")
    with torch.no_grad():
        expected = model.eval()(data.x_test)
        assert (small(data.x_test) - expected).abs().max() <= 1e-5 * expected.abs().max()
    assert "Compact networks" in (finished / "report.html").read_text(encoding="utf-8")


def test_rest_has_sizes_and_the_file(lively: Server, done: str) -> None:
    with httpx.Client(base_url=f"{lively.url}/api/experiments/{done}/") as client:
        minima = client.get("minima").json()["minima"]
        pruned = next(name for name, minimum in minima.items() if minimum["compact"] is not None)
        listed = {file["name"] for file in client.get("files").json()["items"]}
        assert minima[pruned]["compact"]["smaller"] == (f"{pruned}.compact.safetensors" in listed)
        assert all(minima[name]["compact"] is None for name in minima if minima[name]["optimizer"] == "sgd")


def test_the_terminal_prints_a_table_and_writes_files(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", str(finished), "--out", str(tmp_path), "--formats", "safetensors"]) == 0
    printed = capsys.readouterr().out
    assert "as trained" in printed
    assert "sgd.safetensors has no zero groups to remove" in printed
    assert [path.name for path in tmp_path.iterdir()] == ["altsdp.compact.safetensors"]


def test_bad_inputs_of_the_terminal_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_checkpoint(tmp_path / "a.safetensors", torch.nn.Linear(2, 2))
    for arguments, words in (
        ([str(tmp_path / "no")], "does not exist"),
        ([str(tmp_path / "a.safetensors")], "does not say which model it is for"),
        ([str(tmp_path), "--formats", "zip"], "'zip' is unknown, use some of safetensors, onnx, pt2"),
    ):
        assert main(["compact", *arguments]) == 2
        assert words in capsys.readouterr().err
