"""A worker that has ended a task takes the next one at once, by calls that DBOS does not promise to keep."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import dbos._core
import pytest

from app.runners import jobs as runner
from app.runners.jobs import GPU, Jobs
from app.storage.database import Database

Job = tuple[str, str, int]


class Bench:
    """Jobs of this process, which looks into its queue by itself once an hour only."""

    def __init__(self, database: Database) -> None:
        self.ran: list[Job] = []
        self.came = threading.Event()
        self._database = database
        self.jobs = Jobs(database, "worker-test", GPU, self._note)
        with database.alone("start"):
            self.jobs.start()

    def _note(self, experiment: str, task: str, issue: int) -> None:
        self.ran.append((experiment, task, issue))
        self.came.set()

    def put(self, experiment: str) -> None:
        with self._database.write() as connection:
            self.jobs.enqueue_task(connection, experiment, "train:sgd", 1, priority=1)

    def waiting(self) -> list[str]:
        return [job.workflow_id for job in self.jobs.client.list_workflows(status="ENQUEUED")]


@pytest.fixture
def bench(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setattr(runner, "_IDLE_POLL_SECONDS", 3600.0)
    found = Bench(database)
    yield found
    found.jobs.stop()


def test_the_next_job_runs_without_waiting_for_the_poller(bench: Bench) -> None:
    bench.jobs.take_next()  # an empty queue is nothing special
    bench.put("first")
    bench.jobs.take_next()
    assert bench.came.wait(30)
    assert bench.ran == [("first", "train:sgd", 1)]
    assert bench.waiting() == []


def test_with_another_release_of_dbos_the_job_goes_back_into_its_queue(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def changed(_: object) -> None:
        raise AssertionError("is called with more than one argument, and so not at all")

    monkeypatch.setattr(dbos._core, "execute_dequeued_workflow", changed)
    bench.put("first")
    bench.jobs.take_next()
    assert bench.waiting() == ["first:train:sgd:1"]
    assert "lets nobody take a job at once" in caplog.text
    monkeypatch.undo()
    bench.jobs.take_next()
    assert bench.waiting() == ["first:train:sgd:1"], "it is left to the poller from then on"
    assert bench.ran == []
