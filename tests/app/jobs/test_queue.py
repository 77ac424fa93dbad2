"""A process runs the jobs of its queue by the public API of DBOS, and puts back those that it cannot run."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.waiting import until
from valleyscope.app.jobs.queue import CONTROL, GPU, JobQueue, Requeue, task_job
from valleyscope.app.storage.database import Database

HOUSE = Path(__file__).parents[3]


class Bench:
    """Jobs of this process that end when a test says so."""

    def __init__(self, database: Database, queue: str) -> None:
        self.started: list[str] = []
        self.changed = threading.Condition()
        self.ended: set[str] = set()
        self.requeue: set[str] = set()
        self.database = database
        self.queue = queue
        self.jobs = JobQueue(database, f"{queue}-test", queue, self._work)
        self.start()

    def start(self) -> None:
        with self.database.exclusive("start"):
            self.jobs.start()

    def _work(self, experiment: str, *_: object) -> None:
        with self.changed:
            self.started.append(experiment)
            self.changed.notify_all()
            if experiment in self.requeue:
                self.requeue.discard(experiment)
                raise Requeue
            self.changed.wait_for(lambda: experiment in self.ended, 300)

    def put(self, *experiments: str) -> None:
        with self.database.write() as connection:
            for number, experiment in enumerate(experiments):
                if self.queue == GPU:
                    self.jobs.enqueue_task(connection, experiment, 1, "train:sgd", priority=1 + number)
                else:
                    self.jobs.enqueue_experiment(connection, experiment, 1, number)

    def end(self, *experiments: str) -> None:
        with self.changed:
            self.ended.update(experiments)
            self.changed.notify_all()

    def until(self, *started: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: sorted(self.started) == sorted(started), 120), self.started

    def queued(self) -> list[str]:
        return [job.experiment for job in self.jobs.queued_tasks()]

    def close(self) -> None:
        self.end(*self.started)
        self.jobs.stop()


@pytest.fixture
def worker(database: Database) -> Iterator[Bench]:
    found = Bench(database, GPU)
    yield found
    found.close()


def test_a_worker_runs_one_task_at_a_time_by_priority(worker: Bench) -> None:
    worker.put("first", "second")
    worker.until("first")
    assert worker.queued() == ["second"]
    [running] = worker.jobs.running_tasks()
    assert (running.experiment, running.process, running.task) == ("first", "gpu-test", "train:sgd")
    worker.end("first")
    worker.until("first", "second")
    worker.end("second")
    until(lambda: worker.jobs.running_tasks() == [])
    worker.jobs.delete_ended()
    assert worker.jobs.find([task_job("first", 1, "train:sgd"), task_job("second", 1, "train:sgd")]) == {}


def test_a_job_whose_handler_requeues_it_runs_again(worker: Bench) -> None:
    worker.requeue = {"first"}
    worker.put("first")
    worker.until("first", "first")


def test_a_process_that_pauses_takes_no_jobs_until_it_starts_again(worker: Bench) -> None:
    worker.jobs.pause()
    worker.put("first")
    with pytest.raises(AssertionError):
        until(lambda: worker.started, 1.0)
    assert worker.queued() == ["first"]
    worker.start()
    worker.until("first")


def test_jobs_of_a_dead_process_return_to_their_queue(database: Database, worker: Bench) -> None:
    worker.put("first")
    worker.until("first")
    reaper = JobQueue(database, "api-test", CONTROL, print)
    reaper.connect()
    assert reaper.requeue_jobs_of("gpu-alive") == 0
    assert reaper.requeue_jobs_of("gpu-test") == 1
    assert worker.queued() == ["first"]
    reaper.stop()


def test_a_job_that_was_taken_and_never_started_is_requeued(worker: Bench, caplog: pytest.LogCaptureFixture) -> None:
    worker.put("first")
    worker.until("first")
    with worker.jobs._lock:
        worker.jobs._active.clear()  # as if the database had failed between taking and starting it
    worker.jobs.requeue_unstarted()
    assert "never started" not in caplog.text
    worker.jobs.requeue_unstarted()
    assert "1 jobs were taken and never started" in caplog.text


def test_an_experiment_is_enqueued_only_if_its_transaction_commits(database: Database) -> None:
    server = Bench(database, CONTROL)
    with database.write() as connection:
        server.jobs.enqueue_experiment(connection, "lost", 1, 100)
        connection.rollback()
    server.put("kept")
    server.until("kept")
    server.close()


def test_only_the_public_names_of_dbos_are_used() -> None:
    for path in (path for room in ("app", "tests", "benchmarks") for path in (HOUSE / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dbos":
                names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            elif isinstance(node, ast.Import):
                names = [
                    part for alias in node.names if alias.name.startswith("dbos") for part in alias.name.split(".")
                ]
            elif isinstance(node, ast.Attribute):
                names = [node.attr] if node.attr in ("_sys_db", "_dbos", "_registry") else []
            private = [name for name in names if name.startswith("_")]
            assert not private, f"{path.relative_to(HOUSE)} uses {private} of dbos"
