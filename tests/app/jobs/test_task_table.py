"""The task table counts attempts and results, each once, in SQLite and in Postgres."""

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
from valleyscope.app.jobs.task_table import MAX_CRASHES, TaskTable, contributions_of
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.event_table import read_events
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.tables import task_attempts
from valleyscope.landscape.storage.records import LayerRecord, MinimumRecord, PathRecord, PathValues, PlaneRecord

SPEC = Spec.model_validate({"name": "one", "minima": {"sgd": {}}})
TRAIN = Task(Kind.TRAIN, "sgd", priority=10)


@dataclass
class Bench:
    database: Database
    tasks: TaskTable
    jobs: JobQueue
    experiments: ExperimentTable
    experiment: str

    def enqueue(self, *chosen: Task) -> None:
        self.tasks.enqueue(self.jobs, self.experiment, 1, chosen, priority=100, number=1)

    def begin(self, run: int = 1) -> str | None:
        return self.tasks.begin(self.experiment, run, "train:sgd")

    def complete(self, payload: bytes = b"payload", worker: str = "a", run: int = 1) -> bool:
        found = [("tile", {"values": 1})]
        return self.tasks.complete(
            self.experiment, run, "train:sgd", worker=worker, payload=payload, seconds=1.0, events=found
        )

    def crash(self, reason: str = "its process crashed") -> bool:
        return self.tasks.record_crash(self.experiment, 1, "train:sgd", reason)

    def advance(self, share: float) -> bool:
        return self.tasks.advance(self.experiment, 1, "train:sgd", share, [("epoch", {"share": share})])

    def attempts(self) -> int:
        with self.database.read() as connection:
            return int(connection.execute(sa.select(task_attempts.c.attempts)).scalar_one())

    def kinds(self) -> list[str]:
        with self.database.read() as connection:
            return [row.kind for row in read_events(connection, self.experiment, 0, 100)]

    def queued(self) -> list[str | None]:
        return [job.task for job in self.jobs.queued_tasks()]

    def cancel(self) -> None:
        with self.database.write() as connection:
            self.experiments.cancel(connection, self.experiment)

    def end(self) -> None:
        with self.database.write() as connection:
            self.experiments.end(connection, self.experiment, "cancelled")


@pytest.fixture
def bench(database: Database) -> Iterator[Bench]:
    DBOS.migrate(database.engine.url.render_as_string(hide_password=False))
    jobs = JobQueue(database, "api-test", GPU, lambda *_: None)
    jobs.connect()
    experiments = ExperimentTable(database)
    with database.write() as connection:
        row = experiments.add(connection, SPEC, key=None, priority=100)
    yield Bench(database, TaskTable(database), jobs, experiments, row.id)
    jobs.stop()


def test_tasks_wait_in_the_order_of_their_priority(bench: Bench) -> None:
    bench.enqueue(Task(Kind.SURFACE, "valley", 3, priority=41), TRAIN)
    assert bench.queued() == ["train:sgd", "surface:valley:3"]
    found = bench.jobs.find([task_job(bench.experiment, 1, "train:sgd"), "unknown"])
    assert [(job.experiment, job.run, job.state) for job in found.values()] == [(bench.experiment, 1, "queued")]


def test_a_task_that_is_queued_stays_there_once(bench: Bench) -> None:
    bench.enqueue(TRAIN)
    bench.enqueue(TRAIN)
    assert bench.queued() == ["train:sgd"]


def test_an_experiment_runs_from_its_first_task_on(bench: Bench) -> None:
    assert bench.experiments.get(bench.experiment).state == "queued"
    text = bench.begin()
    assert text is not None
    assert Spec.model_validate_json(text) == SPEC
    row = bench.experiments.get(bench.experiment)
    assert (row.state, row.stage) == ("running", "minima")
    assert row.started is not None
    bench.begin()
    assert bench.attempts() == 2
    assert bench.kinds().count("state") == 2


def test_a_result_enters_once_with_its_events(bench: Bench) -> None:
    bench.begin()
    bench.begin()
    assert bench.complete(b"first", worker="a")
    assert not bench.complete(b"second", worker="b")
    assert [result.payload for result in bench.tasks.results(bench.experiment, 1)] == [b"first"]
    assert bench.kinds().count("tile") == 1
    with bench.database.read() as connection:
        assert [(one.worker, one.tasks) for one in contributions_of(connection, bench.experiment)] == [("a", 1)]
    assert bench.begin() is None
    assert not bench.advance(0.5)
    assert not bench.tasks.is_wanted(bench.experiment, 1, "train:sgd")


def test_a_saved_result_has_no_payload_and_can_be_computed_again(bench: Bench) -> None:
    bench.begin()
    bench.complete()
    bench.tasks.drop_payloads(bench.experiment, ["train:sgd"])
    assert bench.tasks.results(bench.experiment, 1) == []
    assert bench.begin() is None
    bench.enqueue(TRAIN)  # its file was lost since
    assert bench.begin() is not None
    assert bench.complete(b"again")


def test_a_result_that_no_snapshot_has_is_not_lost_by_enqueueing_its_task_again(bench: Bench) -> None:
    bench.begin()
    bench.complete()
    bench.enqueue(TRAIN)
    assert [result.payload for result in bench.tasks.results(bench.experiment, 1)] == [b"payload"]


def test_three_crashes_without_progress_fail_the_task(bench: Bench) -> None:
    bench.begin()
    assert [bench.crash() for _ in range(MAX_CRASHES)] == [True, True, False]
    assert bench.begin() is None
    [result] = bench.tasks.results(bench.experiment, 1)
    assert result.payload is None
    assert result.error == "its process crashed, 3 times without progress"
    assert bench.kinds().count("error") == 1
    assert not bench.complete(), "a late result does not undo it"


def test_a_long_task_may_crash_often_as_long_as_it_progresses(bench: Bench) -> None:
    bench.begin()
    for number in range(10):
        assert bench.advance(0.05 * (number + 1))
        assert bench.crash()
    assert [bench.crash() for _ in range(MAX_CRASHES - 1)] == [True, False]


def test_requeued_attempts_are_no_crashes(bench: Bench) -> None:
    for _ in range(3 * MAX_CRASHES):
        assert bench.begin() is not None
    assert bench.crash()


def test_a_cancelled_experiment_stops_its_tasks(bench: Bench) -> None:
    bench.begin()
    assert bench.tasks.is_wanted(bench.experiment, 1, "train:sgd")
    bench.cancel()
    assert not bench.tasks.is_wanted(bench.experiment, 1, "train:sgd")
    assert not bench.advance(0.5)
    assert bench.kinds().count("epoch") == 1, "what was computed until then is saved"
    assert bench.begin() is None


def test_results_of_a_run_that_is_over_are_ignored(bench: Bench) -> None:
    bench.begin()
    bench.end()
    assert not bench.complete()
    assert not bench.advance(0.5)
    assert {"tile", "epoch"}.isdisjoint(bench.kinds())
    with bench.database.write() as connection:
        assert bench.experiments.start_next_run(connection, bench.experiment).run == 2
    assert not bench.complete(run=1)
    assert bench.begin(run=1) is None


def test_another_run_starts_without_crashes_and_takes_over_results(bench: Bench) -> None:
    bench.begin()
    bench.complete()
    bench.tasks.fail(bench.experiment, 1, "train:other", "why")
    bench.end()
    with bench.database.write() as connection:
        bench.experiments.start_next_run(connection, bench.experiment)
    assert [(one.task, one.payload) for one in bench.tasks.results(bench.experiment, 2)] == [("train:sgd", b"payload")]
    assert bench.tasks.begin(bench.experiment, 2, "train:other") is not None
    assert bench.tasks.shares(bench.experiment, 2) == {"train:other": 0.0}


def test_jobs_that_are_queued_can_be_cancelled(bench: Bench) -> None:
    bench.enqueue(TRAIN, Task(Kind.TRAIN, "other", priority=10))
    job = task_job(bench.experiment, 1, "train:other")
    assert bench.jobs.cancel_queued([job, "unknown"]) == {job}
    assert bench.queued() == ["train:sgd"]
    bench.jobs.delete_experiment(bench.experiment)
    assert bench.queued() == []


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
def test_a_result_survives_its_payload(result: Result) -> None:
    payload = encode(result)
    again = decode(payload)
    assert type(again) is type(result)
    assert repr(again) == repr(result)
    assert encode(again) == payload


def test_a_payload_runs_no_code() -> None:
    import io
    import pickle

    buffer = io.BytesIO()
    np.savez(buffer, content=np.array([pickle.dumps(print)], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        decode(buffer.getvalue())
