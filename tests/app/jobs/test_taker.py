"""A process takes jobs at once, and no more than it has room for, by calls that DBOS does not promise to keep."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import dbos._core
import pytest
import sqlalchemy as sa
from dbos._workflow_commands import WORKFLOW_TIMEOUT_THREAD_NAME

from valleyscope.app.jobs import queue as runner
from valleyscope.app.jobs.queue import CONTROL, GPU, JobQueue
from valleyscope.app.storage.database import Database

SELDOM, OFTEN = 3600.0, 0.05


class Bench:
    """Jobs of this process, whose duty ends when it is told to."""

    def __init__(self, database: Database, queue: str, most: int = 1) -> None:
        self.most = most
        self.begun: list[str] = []
        self.changed = threading.Condition()
        self.ended: set[str] = set()
        self.database = database
        self.jobs = JobQueue(database, f"{queue}-test", queue, self._work, lambda: self.most)
        with database.exclusive("start"):
            self.jobs.start()

    def _work(self, experiment: str, *_: object) -> None:
        with self.changed:
            self.begun.append(experiment)
            self.changed.notify_all()
            self.changed.wait_for(lambda: experiment in self.ended, 300)

    def put(self, *experiments: str) -> None:
        with self.database.write() as connection:
            for priority, experiment in enumerate(experiments):
                if self.jobs._listens_to == GPU:
                    self.jobs.enqueue_task(connection, experiment, "train:sgd", 1, priority=1 + priority)
                else:
                    self.jobs.enqueue_experiment(connection, experiment, 1, priority)

    def end(self, *experiments: str) -> None:
        with self.changed:
            self.ended.update(experiments)
            self.changed.notify_all()

    def until(self, *begun: str) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: set(begun) <= set(self.begun), 120), self.begun

    def waiting(self) -> set[str]:
        found = self.jobs.client.list_workflows(status="ENQUEUED")
        return {job.workflow_id.split(":")[0].split(".")[0] for job in found}

    def close(self) -> None:
        self.end(*self.begun)
        self.jobs.stop()


@pytest.fixture(autouse=True)
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_IDLE_POLL_SECONDS", SELDOM)
    monkeypatch.setattr(runner, "_CONTROL_POLL_SECONDS", SELDOM)


@pytest.fixture
def worker(database: Database) -> Iterator[Bench]:
    found = Bench(database, GPU)
    yield found
    found.close()


@pytest.fixture
def server(database: Database) -> Iterator[Bench]:
    found = Bench(database, CONTROL)
    yield found
    found.close()


def test_a_job_begins_when_somebody_calls_not_at_the_next_look(worker: Bench) -> None:
    worker.jobs.call()  # an empty queue is nothing special
    worker.put("first")
    worker.jobs.call()
    worker.until("first")
    assert worker.waiting() == set()


def test_the_next_job_begins_when_one_ends_and_not_before(worker: Bench) -> None:
    worker.put("first", "second")
    worker.jobs.call()
    worker.until("first")
    worker.jobs.call()
    assert worker.waiting() == {"second"}
    worker.end("first")
    worker.until("second")


def test_experiments_that_did_not_come_by_the_queue_take_up_room_as_well(server: Bench) -> None:
    server.most = 2
    server.jobs.start_experiment("started", 1)
    server.until("started")
    server.put("first", "second", "third")
    server.jobs.call()
    server.until("first")
    server.jobs._taker.look()
    assert server.waiting() == {"second", "third"}
    server.end("started")
    server.until("second")
    assert server.waiting() == {"third"}


def test_who_has_no_room_asks_the_database_nothing(worker: Bench) -> None:
    worker.most = 0
    asked: list[Any] = []
    sa.event.listen(worker.database.engine, "before_cursor_execute", lambda *details: asked.append(details[2]))
    _end_of_rounds()
    asked.clear()
    worker.jobs._taker.look()
    assert asked == []


@pytest.mark.usefixtures("worker")
def test_a_worker_makes_no_rounds_for_dbos() -> None:
    _end_of_rounds()


@pytest.mark.usefixtures("server")
def test_the_server_goes_on_with_the_rounds_of_dbos() -> None:
    assert _rounds()


def test_with_another_release_of_dbos_the_job_goes_back_and_its_own_poller_runs_it(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner, "_IDLE_POLL_SECONDS", OFTEN)
    worker = Bench(database, GPU, most=0)  # so that it takes nothing before the change
    monkeypatch.setattr(dbos._core, "execute_dequeued_workflow", _changed)
    worker.put("first")
    worker.most = 1
    worker.jobs.call()
    worker.until("first")
    assert "lets nobody take a job at once" in caplog.text
    worker.end("first")
    worker.put("second")
    worker.until("second")
    worker.close()


def test_a_release_of_dbos_that_is_seen_to_be_another_keeps_its_poller(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner, "_IDLE_POLL_SECONDS", OFTEN)
    monkeypatch.setattr(dbos._core, "execute_dequeued_workflow", _changed)
    worker = Bench(database, GPU)
    worker.put("first")
    worker.until("first")
    worker.close()
    assert "lets nobody take a job at once" in caplog.text


def _changed(_: object) -> None:
    raise AssertionError("is called with more than one argument, and so not at all")


def _rounds() -> list[threading.Thread]:
    """The threads in which DBOS asks its database something every second."""
    names = ("queue-worker-", WORKFLOW_TIMEOUT_THREAD_NAME)
    return [thread for thread in threading.enumerate() if thread.name.startswith(names)]


def _end_of_rounds() -> None:
    for thread in _rounds():
        thread.join(120)
    assert not _rounds()
