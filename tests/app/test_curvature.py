"""Curvature of an experiment: its tasks compute what the library does, and every result is in file, REST and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import httpx
import numpy as np
import pytest

from tests.app.servers import Server
from tests.landscape.curved import curved
from valleyscope import curvature, partition, theorem_trial
from valleyscope.app.experiments.curvature_spec import measured_epochs, size_errors, trials
from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.plan import Kind, PlanState, Task, plan
from valleyscope.app.experiments.result_codec import decode, encode
from valleyscope.app.experiments.spec import BadSpec, Spec, parse_spec
from valleyscope.app.experiments.task_files import is_input, is_output
from valleyscope.app.tasks.context import TaskContext
from valleyscope.app.tasks.curvature_tasks import measure_curvature
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.tasks import run_task
from valleyscope.landscape.export.csv_tables import curvature_csv
from valleyscope.landscape.report.page import report_html
from valleyscope.landscape.storage.landscape_file import DamagedLandscape, Landscape

CONTENT: dict[str, Any] = {
    "model": {"name": "cnn", "channels": [3, 4], "hidden": 8},
    "training": {"epochs": 4, "lr": 0.05, "schedule": {"kind": "constant"}, "snapshots": 2},
    "minima": {
        "sgd": {},
        "altsdp": {"optimizer": "altsdp", "mode": "dual", "c": 0.3},
        "other": {"seed": 3},
        "exact": {"method": "sdp", "of": "sgd", "sparsity": 0.3, "curvature_cut": 0.05},
    },
    "curves": {},
    "planes": {"eigen": {"around": "sgd", "directions": ["sharpest", "flattest"], "resolution": 3}},
    "points": 3,
    "samples": 150,
    "curvature": {"minima": ["sgd"], "top": 4, "directions": True, "cut": 0.05, "probes": 4},
}
SPEC = parse_spec(CONTENT)
KINDS = (Kind.TRAIN, Kind.CURVATURE, Kind.SNAPSHOT_CURVATURE, Kind.DIRECTIONS, Kind.TRIAL, Kind.FRAME, Kind.SURFACE)


def run(spec: Spec, folder: Path, task: Task) -> Any:
    return decode(encode(run_task(Assignment(task, spec, folder, None, {}), lambda *_: None, lambda: False)))


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Landscape]:
    """The folder and the file of an experiment after its tasks of curvature, each in the order of the plan."""
    folder = tmp_path_factory.mktemp("curved")
    writer = ExperimentWriter(SPEC, folder)
    state = PlanState([task for task in writer.tasks if task.kind in KINDS])
    while ready := state.ready():
        writer.add_result(ready[0], run(SPEC, folder, ready[0]))
        state.done.add(ready[0].id)
        assert writer.is_done(ready[0]), ready[0].id
    assert not state.open
    writer.snapshot()
    writer.close()
    return folder, Landscape.open(folder / "landscape.h5")


def test_the_tasks_compute_what_the_library_does(measured: tuple[Path, Landscape]) -> None:
    folder, landscape = measured
    found = landscape.curvature["sgd"]
    context = TaskContext(SPEC, folder, None, {})
    pair = (context.data.x_train[:150], context.data.y_train[:150])
    expected = curvature(context.network(), context.minimum("sgd"), pair, top=4, probes=4)
    np.testing.assert_array_equal(found.eigenvalues, expected.eigenvalues)
    np.testing.assert_array_equal(found.density_values, expected.density.values)  # type: ignore[union-attr]
    assert (found.trace, found.samples, found.dimension) == (expected.trace, 150, expected.dimension)
    assert found.epochs["epoch"].tolist() == [2, 4]
    assert found.epochs["largest"][1] == pytest.approx(found.eigenvalues[0], rel=1e-3)
    trial = found.trials["altsdp"]
    model = context.network()
    same = theorem_trial(
        model,
        context.minimum("sgd"),
        context.minimum("altsdp"),
        pair,
        partition(model),
        trial.strength,
        0.05,
        distances=[1.0],
    )
    np.testing.assert_allclose(trial.factors, same.theorem.factors, atol=1e-6)
    np.testing.assert_allclose(trial.theorem, same.theorem.norms, atol=1e-6)
    assert trial.scores["theorem"]["agreement"] == same.theorem.agreement
    assert trial.scores["null"]["zero"] == same.null.zero
    assert found.directions is not None
    assert same.loss is not None
    place = found.directions.distances.tolist().index(1.0)
    assert found.directions.losses["flat"][place] == pytest.approx(same.loss.flat[0], rel=1e-4)
    assert trial.strength == pytest.approx(landscape.minima["altsdp"].final["threshold"])
    exact = landscape.minima["exact"]
    assert exact.pruning["direction_factors"]["smallest"] == pytest.approx(float(trial.factors.min()), abs=1e-6)
    assert exact.final["zero_groups"] == pytest.approx(0.3, abs=0.05)


def test_a_plane_of_measured_directions_shows_the_curvature_and_the_other_minima(
    measured: tuple[Path, Landscape],
) -> None:
    folder, landscape = measured
    plane = landscape.planes["eigen"]
    assert plane.axes[0].startswith("eigenvector 1, eigenvalue")
    assert plane.axes[1].startswith("flat subspace")
    assert plane.complete
    assert abs(plane.points["altsdp"][0]) < plane.x[-1]
    assert abs(plane.points["altsdp"][1]) < plane.y[-1]
    context = TaskContext(SPEC, folder, None, {})
    made = context.plane("eigen")
    pair = (context.data.x_train[:150], context.data.y_train[:150])
    vector = curvature(context.network(), context.minimum("sgd"), pair, top=4, probes=4).eigenvectors[0]
    assert abs(float(made.u @ vector.double())) == pytest.approx(1)
    assert "Measured directions around sgd" in report_html(landscape)


def test_a_repeated_task_returns_what_it_left_and_its_files_travel_with_it(measured: tuple[Path, Landscape]) -> None:
    folder, landscape = measured
    task = next(task for task in plan(SPEC) if task.kind is Kind.CURVATURE)
    again = measure_curvature(
        TaskContext(SPEC, folder, None, {}), task, lambda *_: pytest.fail("computed again"), lambda: False
    )
    np.testing.assert_array_equal(again.record.eigenvalues, landscape.curvature["sgd"].eigenvalues)  # type: ignore[union-attr]
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert not [name for name in left if name.endswith("-state.pt")]
    by_id = {task.id: task for task in plan(SPEC)}
    assert {name for name in left if is_output(by_id["curvature:sgd"], name)} == {
        "work/curvature-sgd.npz",
        "work/curvature-sgd.safetensors",
    }
    for id, needed in (
        ("trial:altsdp", {"work/directions-sgd.safetensors", "sgd.safetensors", "altsdp.safetensors"}),
        ("snapshot-curvature:sgd:2", {"work/sgd/snapshot-000002.safetensors"}),
        ("surface:eigen:0", {"work/curvature-sgd.npz", "work/directions-sgd.safetensors", "sgd.safetensors"}),
    ):
        assert needed <= {name for name in left if is_input(SPEC, by_id[id], name)}, id


def test_the_file_keeps_everything_and_notices_edits(tmp_path: Path) -> None:
    landscape, path = curved(), tmp_path / "landscape.h5"
    landscape.save(path)
    kept = Landscape.open(path)
    for name, record in landscape.curvature.items():
        other = kept.curvature[name]
        assert encode_record(record) == encode_record(other)
    with h5py.File(path, "r+") as file:
        file["curvature/sgd/trials/altsdp/factors"][0] = 0.5
    with pytest.raises(DamagedLandscape, match="curvature/sgd: was altered after it was written"):
        Landscape.open(path)
    landscape.curvature["sgd"].residuals = np.ones(2)
    with pytest.raises(ValueError, match="curvature/sgd/residuals: has 2 values; expected 3"):
        landscape.save(path)


def encode_record(record: Any) -> str:
    """A record as text in which equal ones are equal."""
    with np.printoptions(threshold=100_000):
        return repr(record)


def test_rest_and_csv_have_the_numbers(bare: Server) -> None:
    landscape = curved()
    id = bare.charted(landscape, curvature={"top": 3})
    with httpx.Client(base_url=f"{bare.url}/api/experiments/{id}/", timeout=60) as client:
        found = client.get("curvature").json()["minima"]
        assert found["sgd"]["eigenvalues"] == [39.0, 17.5, 3.25]
        assert found["sgd"]["epochs"]["edge"] == [20.0 * 2, 80.0, 320.0]
        assert found["sgd"]["directions"]["spread"][2]["removed"] == 216
        assert found["sgd"]["trials"]["altsdp"]["scores"]["theorem"]["agreement"] == 1
        assert "groups vanished, the theorem predicts" in found["sgd"]["trials"]["altsdp"]["text"]
        assert found["altsdp"]["directions"] is None
        grid, density = (np.array(found["sgd"]["density"][axis], dtype=float) for axis in ("x", "y"))
        assert np.trapezoid(np.nan_to_num(density), grid) == pytest.approx(1, abs=0.01)
        assert client.get("contents").json()["curvature"] == ["sgd", "altsdp"]
        rows = client.get("files/curvature.csv").text.splitlines()
        assert rows[1] == "sgd,,eigenvalue,1,39.0,1e-06"
        assert client.get("files/theorem.csv").text.count("\n") == 11
    assert curvature_csv(landscape, "factors.csv").count(b"\n") == 31


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"curvature": {"minima": ["no"]}}, "curvature.minima.0: 'no' is not a minimum of this spec: use one of sgd"),
        ({"curvature": {"top": 0}}, "curvature.top: .*greater than or equal to 1"),
        ({"curvature": {"cut": 2.0, "relative": True}}, "curvature.cut: cut is 2 with relative: give a share"),
        ({"batch_norm": "running"}, "batch_norm: curvature needs BatchNorm statistics that the loss depends on"),
        ({"curvature": None}, "planes.eigen.directions: directions need the curvature of 'sgd': give curvature"),
        ({"curvature": {"minima": ["other"]}}, "planes.eigen.directions: directions need the curvature of 'sgd'"),
        ({"curvature": {"top": 4}}, "planes.eigen.directions.1: 'flattest' lies in the flat subspace"),
        ({"planes": {"a": {"around": "sgd", "directions": [1, 9]}}}, "eigenvector 9 is not found: curvature.top is 4"),
        ({"planes": {"a": {"around": "sgd", "directions": ["sharpest", 1]}}}, "give two different ones"),
        ({"planes": {"a": {"trajectory": "sgd", "directions": [1, 2]}}}, "directions belong to a plane around"),
    ],
)
def test_bad_specs_are_refused_with_the_field(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(BadSpec, match=message):
        parse_spec(CONTENT | changes)


def test_too_many_eigenvalues_and_too_much_memory_are_refused_before_work(bare: Server) -> None:
    asked = parse_spec(CONTENT | {"curvature": {"top": 2000, "memory": 1.0}, "planes": {}})
    messages = [error.message for error in size_errors(asked, 1000)]
    assert messages[0].startswith("top is 2000; the network has 1,000 weights")
    large = [error.message for error in size_errors(SPEC, 15_000_000)]
    assert large[0].startswith("vectors for top=4, lowest=2 and probes=4 of 15,000,000 weights take 6.06 GB, the limit")
    refused = httpx.post(
        f"{bare.url}/api/experiments", json=CONTENT | {"curvature": {"top": 2000}, "planes": {}}, timeout=120
    )
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["path"] == "curvature.top"


def test_trials_pair_runs_on_the_same_batches() -> None:
    spec = parse_spec(
        CONTENT
        | {
            "minima": {
                "sgd": {},
                "other": {"seed": 3},
                "altsdp": {"optimizer": "altsdp", "c": 0.1},
                "kernels": {"optimizer": "altsdp", "structure": "kernel", "seed": 3},
                "longer": {"optimizer": "altsdp", "epochs": 9},
                "single": {"optimizer": "altsdp", "structure": "element"},
            },
            "curvature": {"directions": True},
            "planes": {},
        }
    )
    assert trials(spec) == {"altsdp": "sgd", "kernels": "other"}
    assert measured_epochs(spec, "longer") == [2, 4, 6, 8, 9]
    long = parse_spec(CONTENT | {"training": {"epochs": 200, "snapshots": 1}, "curvature": {}, "planes": {}})
    epochs = measured_epochs(long, "sgd")
    assert len(epochs) == 40
    assert (epochs[0], epochs[-1]) == (1, 200)
