"""The task_table counts attempts and results, each once, in SQLite and in Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import sqlalchemy as sa
from dbos import DBOS

from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.result_codec import decode, encode
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import (
    FramedPlane,
    Judged,
    MeasuredPath,
    Result,
    SurfaceTile,
    TrainedMinimum,
)
from valleyscope.app.jobs.queue import GPU, JobQueue, task_job
from valleyscope.app.jobs.task_table import MAX_CRASHES, TaskTable
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import read_events
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.tables import experiments, tasks
from valleyscope.landscape.storage.records import LayerRecord, MinimumRecord, PathRecord, PathValues, PlaneRecord

SPEC = Spec.model_validate({"name": "one", "minima": {"sgd": {}}})
TRAIN = Task(Kind.TRAIN, "sgd", priority=10)


@dataclass
class Bench:
    database: Database
    task_table: TaskTable
    jobs: JobQueue
    experiment: str

    def issue(self, *chosen: Task) -> None:
        self.task_table.issue(self.jobs, self.experiment, chosen, priority=100, number=1)

    def begin(self, worker: str, issue: int = 1, task: str = "train:sgd") -> str | None:
        return self.task_table.begin(self.experiment, task, issue, worker)

    def row(self, task: str = "train:sgd") -> sa.Row[tuple[object, ...]]:
        with self.database.read() as connection:
            return connection.execute(sa.select(tasks).where(tasks.c.task == task)).one()

    def kinds(self) -> list[str]:
        with self.database.read() as connection:
            return [row.kind for row in read_events(connection, self.experiment, 0, 100)]

    def jobs_in_queue(self) -> set[str]:
        return {job.workflow_id for job in self.jobs.client.list_workflows(status="ENQUEUED")}


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    DBOS.migrate(database.engine.url.render_as_string(hide_password=False))
    jobs = JobQueue(database, "api-test", GPU, lambda *_: None)
    jobs.connect()
    with database.write() as connection:
        row = ExperimentTable(database).add(connection, SPEC, key=None, priority=100)
    yield Bench(database, TaskTable(database), jobs, row.id)
    jobs.client.destroy()


def test_a_task_and_its_job_enter_the_queue_together(bench: Bench) -> None:
    bench.issue(TRAIN, Task(Kind.SURFACE, "valley", 3, priority=41))
    assert bench.jobs_in_queue() == {
        task_job(bench.experiment, "train:sgd", 1),
        task_job(bench.experiment, "surface:valley:3", 1),
    }
    assert [row.task for row in bench.task_table.queue()] == ["train:sgd", "surface:valley:3"]


def test_a_result_is_not_lost_by_issuing_its_task_again(bench: Bench) -> None:
    bench.issue(TRAIN)
    bench.issue(TRAIN)
    bench.begin("a")
    bench.issue(TRAIN)
    assert bench.row().owner == "a"
    assert bench.task_table.complete(bench.experiment, "train:sgd", "a", b"payload", 1.0, [])
    bench.issue(TRAIN)
    row = bench.row()
    assert (row.state, row.issue, row.attempts, row.result) == ("done", 1, 1, b"payload")


def test_an_experiment_runs_from_its_first_task_on(bench: Bench) -> None:
    experiment_table = ExperimentTable(bench.database)
    bench.issue(TRAIN)
    assert experiment_table.get(bench.experiment).state == "queued"
    text = bench.begin("a")
    assert text is not None
    assert Spec.model_validate_json(text) == SPEC
    row = experiment_table.get(bench.experiment)
    assert (row.state, row.stage) == ("running", "minima")
    assert row.started is not None


def test_a_result_counts_once_and_only_from_the_owner(bench: Bench) -> None:
    bench.issue(TRAIN)
    bench.begin("a")
    bench.begin("b")  # a is dead, or so it seems
    found = [("tile", {"values": 1})]
    assert not bench.task_table.complete(bench.experiment, "train:sgd", "a", b"late", 1.0, found)
    assert bench.task_table.complete(bench.experiment, "train:sgd", "b", b"payload", 1.0, found)
    assert not bench.task_table.complete(bench.experiment, "train:sgd", "b", b"again", 1.0, found)
    assert [ended.payload for ended in bench.task_table.ended(bench.experiment)] == [b"payload"]
    assert bench.kinds().count("tile") == 1
    assert bench.begin("c") is None
    bench.task_table.keep(bench.experiment, ["train:sgd"])
    assert bench.task_table.ended(bench.experiment) == []


def test_a_task_that_waits_runs_or_has_a_result_is_not_issued_again(bench: Bench) -> None:
    bench.issue(TRAIN)
    bench.issue(TRAIN)
    assert bench.row().issue == 1
    bench.begin("a")
    bench.issue(TRAIN)
    assert (bench.row().issue, bench.row().owner) == (1, "a")
    bench.task_table.complete(bench.experiment, "train:sgd", "a", b"payload", 1.0, [])
    bench.issue(TRAIN)
    assert (bench.row().issue, bench.row().state, bench.row().result) == (1, "done", b"payload")
    bench.task_table.keep(bench.experiment, ["train:sgd"])
    bench.issue(TRAIN)  # its file was lost since
    assert (bench.row().issue, bench.row().state) == (2, "queued")


def test_three_deaths_without_progress_are_the_tasks_fault(bench: Bench) -> None:
    bench.issue(TRAIN)
    for worker in range(MAX_CRASHES):
        assert bench.begin(f"w{worker}") is not None
    assert bench.begin("last") is None
    [ended] = bench.task_table.ended(bench.experiment)
    assert ended.payload is None
    assert "died 3 times" in str(ended.error)
    assert bench.kinds().count("error") == 1


def test_a_long_task_may_lose_many_workers_as_long_as_it_gets_further(bench: Bench) -> None:
    bench.issue(TRAIN)
    for worker in range(10):
        assert bench.begin(f"w{worker}") is not None
        assert bench.task_table.advance(bench.experiment, "train:sgd", f"w{worker}", 0.05 * (worker + 1))
    for worker in range(MAX_CRASHES - 1):
        assert bench.begin(f"v{worker}") is not None
    assert bench.begin("last") is None


def test_deaths_of_children_count_as_well(bench: Bench) -> None:
    bench.issue(TRAIN)
    bench.begin("a")
    assert bench.task_table.record_child_crash(bench.experiment, "train:sgd", "a", "exit code -9")
    assert bench.task_table.record_child_crash(bench.experiment, "train:sgd", "a", "exit code -9")
    assert not bench.task_table.record_child_crash(bench.experiment, "train:sgd", "a", "exit code -9")
    assert "exit code -9" in str(bench.task_table.ended(bench.experiment)[0].error)


def test_a_task_that_is_handed_back_is_nobodys_fault(bench: Bench) -> None:
    bench.issue(TRAIN)
    for worker in range(3 * MAX_CRASHES):
        assert bench.begin(f"w{worker}") is not None
        bench.task_table.hand_back(bench.experiment, "train:sgd", f"w{worker}")
    assert bench.begin("last") is not None


def test_a_cancelled_experiment_gives_out_no_task_and_stops_the_running_one(bench: Bench) -> None:
    bench.issue(TRAIN, Task(Kind.TRAIN, "other", priority=10))
    bench.begin("a")
    assert bench.task_table.is_wanted(bench.experiment, "train:sgd", "a")
    with bench.database.write() as connection:
        connection.execute(experiments.update().values(cancel=True))
    assert not bench.task_table.is_wanted(bench.experiment, "train:sgd", "a")
    assert not bench.task_table.advance(bench.experiment, "train:sgd", "a", 0.5)
    assert bench.begin("b", task="train:other") is None
    bench.task_table.stop(bench.experiment, "train:sgd", "a")
    assert bench.task_table.under_way(bench.experiment) == {}


def test_tasks_that_nobody_has_begun_can_be_withdrawn(bench: Bench) -> None:
    bench.issue(TRAIN, Task(Kind.TRAIN, "other", priority=10))
    bench.begin("a")
    assert bench.task_table.withdraw(bench.experiment) == [task_job(bench.experiment, "train:other", 1)]
    assert list(bench.task_table.under_way(bench.experiment)) == ["train:sgd"]
    assert bench.begin("b", task="train:other") is None


def test_another_run_starts_without_blame(bench: Bench) -> None:
    bench.issue(TRAIN)
    for worker in range(MAX_CRASHES + 1):
        bench.begin(f"w{worker}")
    with bench.database.write() as connection:
        bench.task_table.reset_for_retry(connection, bench.experiment)
    bench.issue(TRAIN)
    assert bench.row().issue == 2
    assert bench.begin("old", issue=1) is None
    assert bench.begin("new", issue=2) is not None
    assert bench.row().deaths == 0


def test_jobs_of_a_dead_process_return_to_their_queue(bench: Bench) -> None:
    bench.issue(TRAIN)
    system = bench.jobs.client._sys_db
    queue = bench.jobs.client.register_queue(GPU, worker_concurrency=1)
    taken, _ = system.start_queued_workflows(queue, "worker-dead", "jobs-1", None, owner_xid="x")
    assert taken == [task_job(bench.experiment, "train:sgd", 1)]
    assert bench.jobs_in_queue() == set()
    assert bench.jobs.begun_by("worker-dead") == set(taken)
    assert bench.jobs.hand_back("worker-alive") == 0
    assert bench.jobs.hand_back("worker-dead") == 1
    assert bench.jobs_in_queue() == set(taken)


def test_lost_jobs_are_found(bench: Bench) -> None:
    bench.issue(TRAIN)
    known = task_job(bench.experiment, "train:sgd", 1)
    assert bench.jobs.lost([known, "nobody"]) == {"nobody"}
    bench.jobs.forget([known])
    assert bench.jobs.lost([known]) == {known}


def results() -> list[Result]:
    odd = np.array([0.5, np.inf, np.nan])
    plane = PlaneRecord.empty("p", "through", odd[:1], odd[:1], ("train",), points={"a": (1.0, 2.0)}, defining=("a",))
    layer = LayerRecord("conv", 4, 1, 100, 25)
    minimum = MinimumRecord("m", "sgd", {"lr": 0.1}, {"loss": odd}, [layer], {"loss": float("inf")}, None)
    return [
        SurfaceTile({"train": odd}, {"train": odd[:0]}),
        FramedPlane(plane),
        TrainedMinimum(minimum, "abc"),
        MeasuredPath(PathRecord("p", "line", "a", "b", odd, odd, {"test": PathValues(odd, odd)})),
        Judged({"kind": "x", "line": {"low": float("-inf")}, "notes": ["y"], "control": None}),
    ]


@pytest.mark.parametrize("result", results(), ids=lambda result: type(result).__name__)
def test_a_result_survives_its_parcel(result: Result) -> None:
    payload = encode(result)
    again = decode(payload)
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    assert encode(again) == payload


def test_a_parcel_runs_no_code() -> None:
    import io
    import pickle

    buffer = io.BytesIO()
    np.savez(buffer, content=np.array([pickle.dumps(print)], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        decode(buffer.getvalue())
