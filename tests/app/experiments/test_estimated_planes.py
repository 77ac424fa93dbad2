"""Estimated planes of an experiment: rounds of tasks, equal after a kill, tightened later, exact where they must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from valleyscope.app.experiments.experiment_writer import LANDSCAPE, ExperimentWriter
from valleyscope.app.experiments.plan import Kind, PlanState, Task, plan
from valleyscope.app.experiments.result_codec import decode, encode
from valleyscope.app.experiments.spec import BadSpec, parse_spec
from valleyscope.app.tasks import tasks
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import PlaneRecord

SPEC: dict[str, Any] = {
    "model": {"name": "mlp", "hidden": [16]},
    "training": {"epochs": 2},
    "minima": {"sgd": {}, "control": {"seed": 5}},
    "curves": {},
    "planes": {"around": {"around": "sgd", "resolution": 21}},
    "points": 3,
    "verdict": {"resamples": 100},
}


def spec_with(accuracy: float | None) -> dict[str, Any]:
    return SPEC | {"planes": {"around": {"around": "sgd", "resolution": 21, "accuracy": accuracy}}}


def run(
    directory: Path, spec: dict[str, Any], stop_after: int | None = None, snapshot_every: float = 1e9
) -> list[Task]:
    """Run the tasks that are not done in this process; returns them. Stopping leaves no last snapshot, like a kill."""
    writer = ExperimentWriter(parse_spec(spec), directory, snapshot_every=snapshot_every)
    try:
        state = PlanState(writer.tasks, (task.id for task in writer.tasks if writer.is_done(task)))
        ran: list[Task] = []
        while ready := state.ready():
            if stop_after is not None and len(ran) == stop_after:
                return ran
            task = ready[0]
            assignment = Assignment(task, writer.spec, directory, None, {})
            writer.add_result(task, decode(encode(tasks.run_task(assignment, lambda *_: None, lambda: False))))
            state.done.add(task.id)
            ran.append(task)
        writer.snapshot()
        return ran
    finally:
        writer.close()
        tasks._context = None


def surface_of(directory: Path) -> PlaneRecord:
    return Landscape.open(directory / LANDSCAPE).planes["around"]


@pytest.fixture(scope="module")
def estimated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("estimated")
    run(directory, spec_with(0.1), snapshot_every=0)  # a file with part of the splits can be saved, too
    return directory


def test_an_estimated_plane_has_errors_and_says_how_much_was_computed(estimated: Path) -> None:
    record = surface_of(estimated)
    train, test = record.splits["train"], record.splits["test"]
    assert record.complete
    assert 0 < record.evaluated < 0.6
    assert record.estimate["settled"]
    assert record.estimate["exact"] == ["test"]
    assert "360 samples" in record.estimate["note"]
    assert train["loss_error"].max() > 0
    assert not test["loss_error"].any()
    assert np.isfinite(test.loss).all()


def test_a_killed_estimate_ends_with_the_same_numbers(estimated: Path, tmp_path: Path) -> None:
    whole = len(plan(parse_spec(spec_with(0.1))))
    for stop_after in (9, 20):
        assert len(run(tmp_path, spec_with(0.1), stop_after)) == stop_after < whole
    run(tmp_path, spec_with(0.1))
    found, expected = surface_of(tmp_path), surface_of(estimated)
    for split in ("train", "test"):
        for quantity in ("loss", "error", "loss_error", "error_error"):
            assert np.array_equal(found.splits[split][quantity], expected.splits[split][quantity])


def test_a_tighter_accuracy_continues_and_an_exact_surface_agrees(estimated: Path) -> None:
    before = surface_of(estimated)
    files = {path.name: path.stat().st_mtime_ns for path in (estimated / "work").glob("estimate-*")}
    ran = run(estimated, spec_with(0.01))
    after = surface_of(estimated)
    assert after.evaluated > before.evaluated
    assert after.splits["train"]["loss_error"].mean() < before.splits["train"]["loss_error"].mean()
    assert all((estimated / "work" / name).stat().st_mtime_ns == time for name, time in files.items())
    assert not any(task.kind in (Kind.TRAIN, Kind.LINE) for task in ran)
    run(estimated, spec_with(None))
    exact = surface_of(estimated)
    assert not exact.splits["train"]["loss_error"].any()
    for record, accuracy in ((before, 0.1), (after, 0.01)):
        ratio = record.splits["train"].loss / exact.splits["train"].loss - 1
        assert np.sqrt(np.mean(ratio**2)) < 2 * accuracy
    assert np.array_equal(exact.splits["test"].loss, after.splits["test"].loss)


@pytest.mark.parametrize("accuracy", [0, -0.1, 1.5, float("nan"), "fine"])
def test_a_bad_accuracy_is_refused_by_its_name(accuracy: Any) -> None:
    with pytest.raises(BadSpec, match=r"planes\.around\.accuracy"):
        parse_spec(spec_with(accuracy))
