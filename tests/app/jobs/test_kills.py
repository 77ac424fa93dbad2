"""Kill drills: whatever is killed, and whenever, the experiment ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from tests.app.cluster import LONG, TINY, Cluster
from tests.app.runs import assert_same_results, run_alone
from valleyscope import Landscape, Plane, build_model, flatten, load_dataset, surface
from valleyscope.app.experiments.amendments import with_plane
from valleyscope.app.experiments.plan import plan, plane_tiles
from valleyscope.app.experiments.spec import Spec
from valleyscope.training.checkpoints import read_checkpoint

SPEC = TINY | {
    "name": "drill",
    "minima": {
        "sgd": {},
        "altsdp": {"optimizer": "altsdp", "target": 0.4, "fork": {"from": "sgd", "epoch": 3}},
        "control": {"seed": 5},
    },
    "training": {"epochs": 8, "batch_size": 64},
    "align": "weights",
}
WHATS = ("worker", "child", "api", "everything")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run_alone(tmp_path_factory.mktemp("undisturbed"), SPEC)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with closing(Cluster(tmp_path_factory.mktemp("home"))) as found:
        found.start(workers=2)
        yield found


def kill(cluster: Cluster, what: str, chance: random.Random) -> None:
    """Kill something, and start it again where it does not do so by itself."""
    if what == "api":
        cluster.kill_api()
        cluster.start_api()
    elif what == "worker":
        cluster.kill_worker(chance.randrange(len(cluster.workers)))
        cluster.start_workers(1)
    elif what == "child":
        for pid in cluster.children(chance.choice(cluster.workers))[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    else:
        count = len(cluster.workers)
        cluster.kill_everything()
        cluster.start(workers=count)


def endure(cluster: Cluster, whats: Sequence[str], chance: random.Random, undisturbed: Path) -> str:
    """Run an experiment, kill all these things at moments that chance chooses, and look at what came of it."""
    experiment = cluster.submit(SPEC)
    for what in whats:
        more = len(cluster.events(experiment)) + chance.randrange(1, 25)
        cluster.until(lambda more=more: len(cluster.events(experiment)) >= more or ended(cluster, experiment))
        time.sleep(0.3 * chance.random())
        kill(cluster, what, chance)
    row = cluster.wait(experiment, "done", timeout=300)
    assert row.error is None
    assert_counted_once(cluster, experiment)  # first, since tasks are cleared away some time after the end
    assert_same_results(undisturbed, cluster.directory(experiment))
    return experiment


def ended(cluster: Cluster, experiment: str) -> bool:
    return cluster.get(experiment).state not in ("queued", "running")


def assert_counted_once(cluster: Cluster, experiment: str) -> None:
    """Every task of the plan is there with one result, and every tile was told of once."""
    spec = Spec.model_validate(SPEC)
    rows = cluster.tasks(experiment)
    assert {row.task: row.state for row in rows} == {task.id: "saved" for task in plan(spec)}
    told = [event.data["index"] for event in cluster.events(experiment) if event.kind == "tile"]
    assert sorted(told) == list(range(len(plane_tiles(spec, "valley"))))
    states = [event.data["state"] for event in cluster.events(experiment) if event.kind == "state"]
    assert states == ["queued", "running", "done"]


def test_experiments_survive_kills_at_random_moments(cluster: Cluster, undisturbed: Path) -> None:
    chance = random.Random(4)
    for whats in (("worker", "api"), ("child", "everything")):
        experiment = endure(cluster, whats, chance, undisturbed)
    assert_added_plane_survives(cluster, experiment, chance)


def assert_added_plane_survives(cluster: Cluster, experiment: str, chance: random.Random) -> None:
    """A plane that is added later ends complete, whatever is killed, and is what a surface of its points is."""
    plane = {"through": ["altsdp", "sgd", "control"], "resolution": 9}
    name, amended = with_plane(Spec.model_validate(SPEC), plane)
    before = len(cluster.events(experiment))
    cluster.call("add_plane", experiment=experiment, amended=amended.to_json())
    cluster.until(lambda: len(cluster.events(experiment)) > before + 1 or ended(cluster, experiment))
    kill(cluster, "worker", chance)
    cluster.wait(experiment, "done", timeout=300)
    directory = cluster.directory(experiment)
    found = Landscape.open(directory / "landscape.h5").planes[name]
    assert found.complete
    data = load_dataset("digits")
    model = build_model(SPEC.get("model", "cnn"), data)
    points = [read_checkpoint(directory / f"{point}.safetensors").state for point in plane["through"]]  # type: ignore[attr-defined]
    flat = [flatten(model, state) for state in points]
    expected = surface(model, Plane.through(*flat), {"train": (data.x_train, data.y_train)}, resolution=9)
    np.testing.assert_allclose(found.splits["train"].loss, expected["train"].loss, rtol=1e-4)


@pytest.mark.parametrize("limit", [60.0, pytest.param(5.0, marks=pytest.mark.drill)])
def test_a_dead_workers_task_runs_again_within_seconds(cluster: Cluster, limit: float) -> None:
    """Five are promised; in `make test`, where others may keep the machine busy, it must happen at all."""
    spec = LONG | {"minima": {"sgd": {"epochs": 600}}, "curves": {}, "planes": {}}
    experiment = cluster.submit(spec)
    cluster.until(lambda: any(event.kind == "epoch" for event in cluster.events(experiment)))
    owner = cluster.task(experiment, "train:sgd").worker
    assert owner is not None
    [index] = [index for index, worker in enumerate(cluster.workers) if f"worker-{worker.pid}-" in owner]
    cluster.kill_worker(index)
    began = time.monotonic()
    cluster.until(lambda: cluster.task(experiment, "train:sgd").worker not in (owner, None))
    assert time.monotonic() - began < limit
    row = cluster.task(experiment, "train:sgd")
    assert (row.state, row.crashes) == ("running", 1)
    cluster.until(lambda: cluster.task(experiment, "train:sgd").attempts == 2)
    cluster.start_workers(1)
    cluster.call("cancel", experiment=experiment)
    cluster.wait(experiment, "cancelled")


def test_a_deletion_that_was_interrupted_is_finished_at_the_next_start(cluster: Cluster) -> None:
    experiment = cluster.submit(SPEC)
    cluster.wait(experiment, "done")
    cluster.kill_api()
    with cluster.database.write() as connection:
        cluster.experiment_table.mark_deleted(connection, experiment)
    assert cluster.directory(experiment).is_dir()
    cluster.start_api()
    assert not [path for path in cluster.home.rglob("*") if experiment in str(path)]


def test_an_experiment_whose_submission_was_interrupted_runs(cluster: Cluster) -> None:
    cluster.kill_api()
    with cluster.database.write() as connection:
        experiment = cluster.experiment_table.add(connection, Spec.model_validate(SPEC), key=None, priority=100).id
    cluster.start_api()
    cluster.wait(experiment, "done")


@pytest.mark.drill
def test_experiments_survive_thirty_kills(cluster: Cluster, undisturbed: Path) -> None:
    seed = int(os.environ.get("DRILL_SEED", random.randrange(10**6)))
    print(f"DRILL_SEED={seed}")
    chance = random.Random(seed)
    left = [what for what in WHATS for _ in range(8)][:30]
    chance.shuffle(left)
    while left:
        count = min(len(left), chance.choice((1, 2)))  # a task that crashes three times without progress fails
        experiment = endure(cluster, [left.pop() for _ in range(count)], chance, undisturbed)
        assert_added_plane_survives(cluster, experiment, chance)
