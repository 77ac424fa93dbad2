"""Lines with one end aligned: in plan, landscape, verdict, report and tables, and `valley align`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.landscape.alignment.test_symmetries import permuted
from valleyscope.app.cli import main
from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.plan import Kind, PlanState, plan
from valleyscope.app.experiments.result_codec import decode, encode
from valleyscope.app.experiments.spec import BadSpec, parse_spec
from valleyscope.app.experiments.task_files import is_input, is_output
from valleyscope.app.tasks.context import TaskContext
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.tasks import run_task
from valleyscope.landscape.alignment.symmetries import symmetries
from valleyscope.landscape.analysis.pair_matrix import matrix_json
from valleyscope.landscape.analysis.pair_verdict import pair_verdict
from valleyscope.landscape.export.csv_tables import matrix_csv
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.training import build_model, load_dataset
from valleyscope.training.checkpoints import load_checkpoint, read_checkpoint, save_checkpoint

SPEC: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [16]},
    "training": {"epochs": 4},
    "minima": {"a": {"seed": 1}, "b": {"seed": 2}, "c": {"seed": 3}},
    "curves": {},
    "planes": {"given": {"through": ["a", "b", "c"], "resolution": 3}},
    "points": 9,
    "align": "weights",
    "verdict": {"resamples": 100},
}


class Branching(nn.Module):
    """A network that cannot be traced."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(shape[1] * shape[2], 4), nn.Linear(4, classes)

    def forward(self, x: Tensor) -> Tensor:
        h = self.one(x.flatten(1))
        return self.two(h if h.sum() > 0 else -h)


def branching(input_shape: tuple[int, ...], classes: int) -> nn.Module:
    return Branching(input_shape, classes)


def run_plan(spec: dict[str, Any], folder: Path, prepare: Any = None) -> Landscape:
    """All tasks of a spec in this process, their results as bytes between worker and writer."""
    parsed = parse_spec(spec)
    writer = ExperimentWriter(parsed, folder)
    state = PlanState(writer.tasks)
    try:
        while ready := state.ready():
            for task in ready:
                assignment = Assignment(task, parsed, folder, None, {})
                writer.add_result(task, decode(encode(run_task(assignment, lambda *_: None, lambda: False))))
                state.done.add(task.id)
                if prepare is not None:
                    prepare(task.id)
        writer.finish()
        assert all(writer.is_done(task) for task in writer.tasks)
    finally:
        writer.close()
    return Landscape.open(folder / "landscape.h5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which b is a copy of a with its hidden units in another order, and c is trained from another seed."""
    base = tmp_path_factory.mktemp("aligned")
    model = build_model(SPEC["model"], load_dataset("digits"))

    def permute(done: str) -> None:
        if done == "train:a":
            checkpoint = load_checkpoint(base / "a.safetensors", model)
            found = symmetries(model, (torch.randn(3, 1, 8, 8),))
            model.load_state_dict(permuted(found, {key: value.clone() for key, value in model.state_dict().items()}))
            described = checkpoint.spec | {"name": "b"}
            save_checkpoint(base / "b.safetensors", model, spec=described, metrics=checkpoint.metrics)

    run_plan(SPEC, base, permute)
    return base


def test_every_line_of_a_spec_with_align_is_also_measured_aligned() -> None:
    spec = parse_spec(SPEC)
    tasks = {task.id: task for task in plan(spec)}
    aligned = [task for task in tasks.values() if task.kind is Kind.ALIGN]
    assert [task.id for task in aligned] == ["align:a-b", "align:a-c", "align:b-c"]
    assert aligned[0].needs == ("train:a", "train:b")
    assert set(tasks["verdict:experiment"].after) >= {task.id for task in aligned}
    assert is_input(spec, aligned[0], "a.safetensors")
    assert is_output(aligned[0], "work/path-aligned.a-b.npz")
    assert not is_output(tasks["line:a-b"], "work/path-aligned.a-b.npz")
    assert not [task for task in plan(parse_spec(SPEC | {"align": "none"})) if task.kind is Kind.ALIGN]
    with pytest.raises(BadSpec, match="align"):
        parse_spec(SPEC | {"align": "biases"})


def test_a_permuted_copy_is_one_basin_up_to_permutation(folder: Path) -> None:
    landscape = Landscape.open(folder / "landscape.h5")
    verdict = landscape.verdict
    assert verdict is not None
    assert verdict["kind"] == "separate"
    assert verdict["line"]["barrier"] > 0.05
    assert verdict["alignment"]["kind"] == "one basin up to permutation"
    assert verdict["alignment"]["line"]["barrier"] == pytest.approx(0, abs=1e-6)
    assert "One basin up to permutation: with the hidden units of b in the order of a" in verdict["sentence"]
    assert "hidden units of b moved to the order of a (by weights)" in landscape.aligned["a-b"].note


def test_the_matrix_is_there_as_given_and_aligned(folder: Path) -> None:
    landscape = Landscape.open(folder / "landscape.h5")
    found = matrix_json(landscape)
    given, aligned = (square["barrier"]["value"] for square in (found, found["aligned"]))
    assert aligned[0][1] == pytest.approx(0, abs=1e-6) != given[0][1]
    assert aligned[0][2] == pytest.approx(aligned[1][2], abs=1e-5), "b is a, up to permutation"
    assert aligned[0][2] == pytest.approx(aligned[2][0], abs=1e-9)
    assert found["aligned"]["barrier"]["low"][0][2] is not None
    assert landscape.aligned_matrix is not None
    assert landscape.aligned_matrix.arrays["barrier"][0, 2] == aligned[0][2]
    header, first, *_ = matrix_csv(landscape).decode().splitlines()
    assert header.split(",")[-6:] == [f"aligned_{q}{b}" for q in ("barrier", "rise") for b in ("", "_low", "_high")]
    assert len(first.split(",")) == len(header.split(","))
    assert "Barrier, aligned" in (folder / "report.html").read_text(encoding="utf-8")


def test_other_pairs_are_judged_aligned_too(folder: Path) -> None:
    landscape = Landscape.open(folder / "landscape.h5")
    for pair in (("a", "c"), ("c", "a")):
        found = pair_verdict(landscape, *pair)
        known = matrix_json(landscape)["aligned"]["barrier"]["value"][0][2]
        assert found["alignment"]["line"]["barrier"] == known
    landscape.aligned = {}
    assert "Hidden units were not aligned" in pair_verdict(landscape, "a", "c")["sentence"]


def test_a_plane_can_go_through_aligned_minima(folder: Path) -> None:
    planes = {name: {"through": ["a", "c", "b"], "resolution": 3, "complete": "random"} for name in ("given", "same")}
    planes["same"]["aligned"] = True
    spec = parse_spec(SPEC | {"planes": planes})
    context = TaskContext(spec, folder, None, {})
    given, aligned = (context.points_on(name) for name in planes)
    assert torch.equal(aligned["b"], aligned["a"]), "b is a copy of a in another order"
    assert not torch.equal(given["b"], given["a"])
    assert (aligned["c"] - aligned["a"]).norm() < (given["c"] - given["a"]).norm()
    for changes in ({"align": "none"}, {"planes": {"p": {"around": "a", "aligned": True}}}):
        with pytest.raises(BadSpec, match="aligned plane"):
            parse_spec(SPEC | {"planes": planes} | changes)


def test_a_network_without_known_symmetries_is_judged_with_the_reason(tmp_path: Path) -> None:
    minima = {"a": {"seed": 1}, "b": {"seed": 2}}
    around = {"planes": {"around": {"around": "a", "resolution": 3}}}
    spec = SPEC | around | {"model": {"name": "tests.app.test_alignment:branching"}, "minima": minima}
    landscape = run_plan(spec, tmp_path)
    assert landscape.verdict is not None
    assert landscape.aligned == {}
    assert landscape.verdict["alignment"]["kind"] == "not aligned"
    assert "Branching cannot be traced" in landscape.verdict["alignment"]["note"]
    assert "Branching cannot be traced" in landscape.provenance["not_aligned"]["a-b"]


def test_valley_align_writes_the_aligned_checkpoint(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b, out = folder / "a.safetensors", folder / "b.safetensors", tmp_path / "aligned.safetensors"
    assert main(["align", str(a), str(b), "--out", str(out)]) == 0
    reference = read_checkpoint(a).state
    assert all(torch.equal(value, reference[name]) for name, value in read_checkpoint(out).state.items())
    assert "of 16 hidden units moved (by weights)" in capsys.readouterr().out
    save_checkpoint(tmp_path / "other.safetensors", build_model({"name": "mlp", "hidden": [8]}, load_dataset("digits")))
    assert main(["align", str(a), str(tmp_path / "other.safetensors"), "--out", str(out)]) != 0
    assert "other.safetensors" in capsys.readouterr().err
