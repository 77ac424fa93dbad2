"""Experiments through the service: real API process, real workers, real children."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from safetensors.numpy import load_file, save_file

from tests.app.cluster import LONG, TINY, Cluster
from tests.app.databases import postgres_url
from tests.app.runs import assert_same_results
from valleyscope.app.experiments.plan import plan, plane_tiles
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.storage.tables import events, experiments, task_attempts, task_results
from valleyscope.landscape.storage.landscape_file import Landscape

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """An API process and two warm workers."""
    with closing(Cluster(tmp_path_factory.mktemp("home"))) as found:
        found.start(workers=2)
        found.until(lambda: len(found.living_workers()) == 2)
        found.wait(found.submit(TINY), "done")
        yield found


def epochs(cluster: Cluster, experiment: str, minimum: str) -> list[int]:
    found = [event.data for event in cluster.events(experiment) if event.kind == "epoch"]
    return [data["epoch"] for data in found if data["minimum"] == minimum]


def test_the_service_finds_what_the_terminal_finds(cluster: Cluster, undisturbed: Path) -> None:
    experiment = cluster.submit(TINY)
    row = cluster.wait(experiment, "done")
    folder = cluster.directory(experiment)
    assert_same_results(undisturbed, folder)
    assert {"landscape.h5", "report.html", "verdict.json", "sgd.safetensors", "altsdp.safetensors"} <= {
        path.name for path in folder.iterdir()
    }
    verdict = Landscape.open(folder / "landscape.h5").verdict
    assert verdict is not None
    assert (row.verdict_kind, row.sentence) == (verdict["kind"], verdict["sentence"])
    assert (row.progress, row.error, row.seconds_left, row.run) == (1.0, None, None, 1)
    assert row.started is not None
    assert row.finished is not None


def test_events_tell_all_of_it_once_and_in_order(cluster: Cluster) -> None:
    experiment = cluster.submit(TINY)
    cluster.wait(experiment, "done")
    found = cluster.events(experiment)
    assert [event.id for event in found] == sorted({event.id for event in found})
    states = [event.data["state"] for event in found if event.kind == "state"]
    assert states == ["queued", "running", "done"]
    for minimum in ("sgd", "altsdp"):
        assert epochs(cluster, experiment, minimum) == [1, 2, 3]
    assert "curve" in {event.kind for event in found}
    warned = [event.data["message"] for event in found if event.kind == "warning"]
    assert any("initial group norms" in message for message in warned)
    landscape = Landscape.open(cluster.directory(experiment) / "landscape.h5")
    spec = Spec.model_validate(TINY)
    seen = [event.data for event in found if event.kind == "tile"]
    assert sorted(data["index"] for data in seen) == list(range(len(plane_tiles(spec, "valley"))))
    picture = np.full((9, 9), np.nan)
    for data in seen:
        picture[data["rows"], data["columns"]] = [float(value) for value in data["values"]["train"]["loss"]]
    np.testing.assert_array_equal(picture, landscape.planes["valley"].splits["train"].loss)
    assert [event.data["kind"] for event in found if event.kind == "verdict"] == [landscape.verdict["kind"]]  # type: ignore[index]


def trains_both(cluster: Cluster, experiment: str) -> bool:
    busy = {worker.task for worker in cluster.living_workers() if worker.experiment == experiment}
    return busy == {"train:sgd", "train:altsdp"}


def test_minima_are_trained_side_by_side(cluster: Cluster) -> None:
    experiment = cluster.submit(LONG)
    cluster.until(lambda: trains_both(cluster, experiment))
    cluster.call("cancel", experiment=experiment)
    cluster.wait(experiment, "cancelled")


def test_the_same_key_gives_the_same_experiment(cluster: Cluster) -> None:
    first = cluster.submit(TINY, key="twice")
    assert cluster.submit(TINY, key="twice") == first
    with pytest.raises(RuntimeError, match=r"KeyReused.*twice"):
        cluster.submit(TINY | {"name": "other"}, key="twice")
    cluster.wait(first, "done")


@pytest.mark.parametrize("limit", [60.0, pytest.param(2.0, marks=pytest.mark.drill)])
def test_cancel_takes_effect_within_seconds_and_retry_goes_on(cluster: Cluster, limit: float) -> None:
    """Two are promised; in `make test`, where others may keep the machine busy, it must happen at all."""
    experiment = cluster.submit(LONG)
    cluster.until(lambda: len(epochs(cluster, experiment, "sgd")) >= 5)
    with pytest.raises(RuntimeError, match=r"WrongState.*cancel it first"):
        cluster.call("delete", experiment=experiment)
    began = time.monotonic()
    cluster.call("cancel", experiment=experiment)
    cluster.until(lambda: cluster.get(experiment).state == "cancelled")
    assert time.monotonic() - began < limit
    assert all(worker.state == "idle" for worker in cluster.living_workers())
    done = max(epochs(cluster, experiment, "sgd"))
    with pytest.raises(RuntimeError, match="WrongState"):
        cluster.call("cancel", experiment=experiment)
    cluster.call("retry", experiment=experiment)
    cluster.until(lambda: max(epochs(cluster, experiment, "sgd")) > done + 2)
    again = epochs(cluster, experiment, "sgd")
    assert again[: again.index(done) + 1] == list(range(1, done + 1))
    assert min(again[again.index(done) + 1 :]) >= done
    assert cluster.get(experiment).run == 2
    cluster.call("cancel", experiment=experiment)
    cluster.wait(experiment, "cancelled")


def test_delete_leaves_neither_file_nor_row(cluster: Cluster) -> None:
    experiment = cluster.submit(TINY)
    cluster.wait(experiment, "done")
    cluster.call("delete", experiment=experiment, permanent=True)
    assert not [path for path in cluster.home.rglob("*") if experiment in str(path)]
    with cluster.database.read() as connection:
        for table, column in (
            (experiments, "id"),
            (task_attempts, "experiment"),
            (task_results, "experiment"),
            (events, "experiment"),
        ):
            left = sa.select(sa.func.count()).select_from(table).where(table.c[column] == experiment)
            assert connection.execute(left).scalar() == 0
        jobs = sa.text("SELECT count(*) FROM workflow_status WHERE workflow_uuid LIKE :prefix")
        assert connection.execute(jobs, {"prefix": f"{experiment}%"}).scalar() == 0
    with pytest.raises(RuntimeError, match="Unknown"):
        cluster.call("cancel", experiment=experiment)


def test_a_task_that_kills_its_process_fails_the_experiment_and_not_the_service(cluster: Cluster) -> None:
    alone = {"minima": {"sgd": {}}, "model": {"name": "tests.app.plugins:lethal"}}
    experiment = cluster.submit(alone)
    row = cluster.wait(experiment, "failed")
    assert "train:sgd: its process crashed (exit code -9, perhaps out of memory), 3 times without progress" in str(
        row.error
    )
    assert "not run, since they need it: frame:around" in str(row.error)
    assert cluster.task(experiment, "train:sgd").attempts == 1
    cluster.wait(cluster.submit(TINY), "done")


def test_one_failed_minimum_does_not_lose_the_others(cluster: Cluster, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.part"
    save_file({"weight": np.zeros((2, 2), np.float32)}, wrong)
    checkpoint = cluster.call(
        "add_checkpoint", source=str(wrong), name="wrong", model={"name": "mlp"}, dataset="digits", sha256="0" * 64
    )
    spec = TINY | {"minima": TINY["minima"] | {"broken": {"checkpoint": checkpoint}}}
    experiment = cluster.submit(spec)
    row = cluster.wait(experiment, "failed")
    assert "train:broken: " in str(row.error)
    assert "not run, since they need it: line:sgd-broken" in str(row.error)
    landscape = Landscape.open(cluster.directory(experiment) / "landscape.h5")
    assert list(landscape.minima) == ["sgd", "altsdp"]
    assert landscape.planes["valley"].complete
    assert "valley" in landscape.curves
    assert "sgd-altsdp" in landscape.lines
    assert landscape.verdict is not None
    assert landscape.verdict["control"] is None
    assert row.verdict_kind == landscape.verdict["kind"]
    assert (cluster.directory(experiment) / "report.html").is_file()


def test_an_uploaded_checkpoint_is_a_minimum_like_any_other(
    cluster: Cluster, undisturbed: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.part"
    shutil.copy(undisturbed / "altsdp.safetensors", file)
    checkpoint = cluster.call(
        "add_checkpoint", source=str(file), name="mine", model=TINY["model"], dataset="digits", sha256="0" * 64
    )
    with pytest.raises(RuntimeError, match=r"Unknown.*minima\.altsdp\.checkpoint"):
        cluster.submit(TINY | {"minima": {"sgd": {}, "altsdp": {"checkpoint": "0" * 16}}})
    experiment = cluster.submit(TINY | {"minima": {"sgd": {}, "altsdp": {"checkpoint": checkpoint}}})
    cluster.wait(experiment, "done")
    mine = load_file(cluster.directory(experiment) / "altsdp.safetensors")
    theirs = load_file(undisturbed / "altsdp.safetensors")
    assert all(np.array_equal(mine[name], theirs[name]) for name in theirs)
    cluster.call("remove_checkpoint", identifier=checkpoint)
    assert not list((cluster.home / "checkpoints").glob(f"{checkpoint}*"))


def test_a_worker_that_is_asked_to_leave_hands_its_task_back(cluster: Cluster) -> None:
    experiment = cluster.submit(LONG)
    cluster.until(lambda: epochs(cluster, experiment, "sgd") and epochs(cluster, experiment, "altsdp"))
    leaving = cluster.workers.pop(0)
    leaving.terminate()
    assert leaving.wait(60) == 0
    assert len(cluster.living_workers()) == 1
    rows = [cluster.task(experiment, name) for name in ("train:sgd", "train:altsdp")]
    assert sorted(row.state for row in rows) == ["queued", "running"]
    assert [row.crashes for row in rows] == [0, 0]
    cluster.start_workers(1)
    cluster.until(lambda: all(cluster.task(experiment, row.task).state == "running" for row in rows))
    cluster.call("cancel", experiment=experiment)
    cluster.wait(experiment, "cancelled")


def test_a_worker_that_pauses_is_not_robbed(cluster: Cluster) -> None:
    experiment = cluster.submit(LONG)
    cluster.until(lambda: epochs(cluster, experiment, "sgd") and epochs(cluster, experiment, "altsdp"))
    os.kill(cluster.workers[0].pid, signal.SIGSTOP)
    time.sleep(4.0)
    os.kill(cluster.workers[0].pid, signal.SIGCONT)
    for name in ("train:sgd", "train:altsdp"):
        row = cluster.task(experiment, name)
        assert (row.attempts, row.crashes) == (1, 0)
    cluster.call("cancel", experiment=experiment)
    cluster.wait(experiment, "cancelled")


def test_a_damaged_landscape_is_set_aside_and_computed_again(cluster: Cluster, undisturbed: Path) -> None:
    experiment = cluster.submit(TINY)
    cluster.wait(experiment, "done")
    with pytest.raises(RuntimeError, match="you can retry one that failed, was cancelled or lost files"):
        cluster.call("retry", experiment=experiment)
    (cluster.directory(experiment) / "landscape.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000))
    cluster.call("retry", experiment=experiment)
    cluster.wait(experiment, "done")
    assert (cluster.directory(experiment) / "landscape.h5.damaged-1").is_file()
    warned = [event.data["message"] for event in cluster.events(experiment) if event.kind == "warning"]
    assert any("landscape.h5.damaged-1" in message for message in warned)
    assert_same_results(undisturbed, cluster.directory(experiment))


def test_a_missing_checkpoint_is_trained_again(cluster: Cluster, undisturbed: Path) -> None:
    experiment = cluster.submit(TINY)
    cluster.wait(experiment, "done")
    (cluster.directory(experiment) / "sgd.safetensors").unlink()
    cluster.call("retry", experiment=experiment)
    cluster.wait(experiment, "done")
    assert_same_results(undisturbed, cluster.directory(experiment))


def test_an_upload_whose_file_is_gone_fails_its_minimum_and_says_so(
    cluster: Cluster, undisturbed: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.part"
    shutil.copy(undisturbed / "altsdp.safetensors", file)
    checkpoint = cluster.call(
        "add_checkpoint", source=str(file), name="mine", model=TINY["model"], dataset="digits", sha256="0" * 64
    )
    kept = cluster.home / "checkpoints" / f"{checkpoint}.safetensors"
    kept.rename(tmp_path / "elsewhere")
    experiment = cluster.submit(TINY | {"minima": {"sgd": {}, "altsdp": {"checkpoint": checkpoint}}})
    row = cluster.wait(experiment, "failed")
    assert f"minima.altsdp.checkpoint='{checkpoint}' is gone: upload it again" in str(row.error)
    (tmp_path / "elsewhere").rename(kept)
    cluster.call("retry", experiment=experiment)
    cluster.wait(experiment, "done")


def test_earlier_experiments_go_first(cluster: Cluster) -> None:
    first = cluster.submit(LONG)
    cluster.until(lambda: trains_both(cluster, first))
    second = cluster.submit(LONG)
    cluster.until(lambda: cluster.task(second, "train:sgd").state == "queued")
    time.sleep(1.0)  # nothing tells that nobody takes it; too short a time only makes the test weaker
    assert cluster.get(second).state == "queued"
    urgent = cluster.submit(LONG | {"name": "urgent"}, priority=0)
    cluster.until(lambda: cluster.task(urgent, "train:sgd").state == "queued")
    cluster.call("cancel", experiment=first)
    cluster.until(lambda: trains_both(cluster, urgent))
    assert cluster.get(second).state == "queued"
    for experiment in (second, urgent):
        cluster.call("cancel", experiment=experiment)
        cluster.wait(experiment, "cancelled")


def test_every_task_of_the_plan_ran_once(cluster: Cluster) -> None:
    experiment = cluster.submit(TINY)
    cluster.wait(experiment, "done")
    rows = cluster.tasks(experiment)
    assert {row.task for row in rows} == {task.id for task in plan(Spec.model_validate(TINY))}
    assert Counter((row.state, row.attempts, row.crashes) for row in rows) == {("saved", 1, 0): len(rows)}


def test_the_same_code_runs_on_postgres(tmp_path: Path, undisturbed: Path) -> None:
    cluster = Cluster(tmp_path, postgres_url())
    try:
        cluster.start(workers=2)
        experiment = cluster.submit(TINY)
        cluster.until(lambda: cluster.get(experiment).state != "queued")
        cluster.kill_worker(0)
        cluster.wait(experiment, "done")
        assert_same_results(undisturbed, cluster.directory(experiment))
        cluster.call("delete", experiment=experiment)
    finally:
        cluster.close()


@pytest.mark.parametrize(("times", "limit"), [(1, 60.0), pytest.param(3, 2.0, marks=pytest.mark.drill)])
def test_cancel_takes_effect_within_seconds_on_postgres_too(tmp_path: Path, times: int, limit: float) -> None:
    """There workers are told of it, and do not ask all the time."""
    cluster = Cluster(tmp_path, postgres_url())
    try:
        cluster.start(workers=2)
        for _ in range(times):
            experiment = cluster.submit(LONG)
            cluster.until(lambda one=experiment: len(epochs(cluster, one, "sgd")) >= 2)
            began = time.monotonic()
            cluster.call("cancel", experiment=experiment)
            cluster.until(lambda one=experiment: cluster.get(one).state == "cancelled")
            assert time.monotonic() - began < limit
    finally:
        cluster.close()


def test_clocks_that_are_set_do_no_harm(tmp_path: Path, undisturbed: Path) -> None:
    """The clock of each process jumps by a day, forth and back, every half second."""
    jumping = (
        "import time; real = time.time; "
        "time.time = lambda: real() + 86400 * (int(2 * real()) % 2); "
        "time.time_ns = lambda: int(1e9 * time.time())"
    )
    cluster = Cluster(tmp_path, preamble=jumping)
    try:
        cluster.start(workers=2)
        experiment = cluster.submit(TINY)
        cluster.until(lambda: cluster.get(experiment).state != "queued")
        cluster.kill_worker(0)
        cluster.start_workers(1)
        cluster.wait(experiment, "done")
        assert_same_results(undisturbed, cluster.directory(experiment))
    finally:
        cluster.close()
