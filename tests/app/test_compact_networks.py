"""Compact networks of an experiment: in its landscape, its report, its files, and by `valley compact`."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
import torch

from tests.app.servers import Server
from tests.training.compaction.networks import with_zero_groups
from valleyscope import build_model, load_compact, load_dataset
from valleyscope.app.cli import main
from valleyscope.app.experiments.plan import Kind, plan
from valleyscope.app.experiments.spec import parse_spec
from valleyscope.app.tasks.compact_task import make_compact
from valleyscope.app.tasks.context import TaskContext
from valleyscope.landscape.report.compact_table import compact_table
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import MinimumRecord
from valleyscope.training.checkpoints import load_checkpoint, save_checkpoint

SPEC = parse_spec({"model": {"name": "cnn"}, "minima": {"sgd": {}, "altsdp": {"optimizer": "altsdp"}}})


def test_minima_that_may_have_zero_groups_are_made_compact() -> None:
    spec = parse_spec({"minima": {"sgd": {}, "pruned": {"optimizer": "altsdp"}, "given": {"checkpoint": "a"}}})
    assert [task.subject for task in plan(spec) if task.kind is Kind.COMPACT] == ["pruned", "given"]


@pytest.fixture(scope="module")
def pruned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run whose minimum `altsdp` has zero groups, and `sgd` none."""
    folder = tmp_path_factory.mktemp("pruned")
    (folder / "work").mkdir()
    data = load_dataset("digits")
    for name in ("sgd", "altsdp"):
        model = build_model("cnn", data, seed=0)
        if name == "altsdp":
            with_zero_groups(model)
        described = {"name": name, "dataset": "digits", "model": SPEC.model.model_dump()}
        save_checkpoint(folder / f"{name}.safetensors", model, spec=described)
    return folder


def test_the_task_writes_a_network_that_computes_the_same(pruned: Path) -> None:
    context = TaskContext(SPEC, pruned, None, {})
    found = make_compact(context, "altsdp").report
    assert found["smaller"]
    assert found["after"]["parameters"] < found["before"]["parameters"]
    assert set(found["latency"]) == {"1", "32"}
    assert make_compact(context, "altsdp").report == found, "latencies are measured once"
    assert make_compact(context, "sgd").report == {"smaller": False}
    model = context.network()
    load_checkpoint(pruned / "altsdp.safetensors", model)
    small = load_compact(pruned / "altsdp.compact.safetensors")
    with torch.no_grad():
        expected = model.eval()(context.data.x_test)
        assert (small(context.data.x_test) - expected).abs().max() <= 1e-5 * expected.abs().max()


def test_landscape_and_report_keep_the_sizes(pruned: Path, tmp_path: Path) -> None:
    found = make_compact(TaskContext(SPEC, pruned, None, {}), "altsdp").report
    landscape = Landscape(name="a", spec={}, provenance={"fingerprint": None})
    landscape.minima["altsdp"] = MinimumRecord("altsdp", "altsdp", compact=found)
    landscape.save(tmp_path / "landscape.h5")
    kept = Landscape.open(tmp_path / "landscape.h5")
    assert kept.minima["altsdp"].compact == found
    shown = compact_table(kept, {"altsdp": "#000"})
    assert f"{found['after']['parameters']:,}" in shown
    assert "as trained" in shown


def test_rest_has_sizes_and_the_file(lively: Server, done: str) -> None:
    with httpx.Client(base_url=f"{lively.url}/api/experiments/{done}/") as client:
        minima = client.get("minima").json()["minima"]
        pruned = next(name for name, minimum in minima.items() if minimum["compact"] is not None)
        listed = {file["name"] for file in client.get("files").json()["items"]}
        assert minima[pruned]["compact"]["smaller"] == (f"{pruned}.compact.safetensors" in listed)
        assert all(minima[name]["compact"] is None for name in minima if minima[name]["optimizer"] == "sgd")


def test_the_terminal_prints_a_table_and_writes_files(
    pruned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compact", str(pruned), "--out", str(tmp_path), "--formats", "safetensors"]) == 0
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
