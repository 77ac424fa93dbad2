"""A worker checks whether its task is wanted when it is notified, and now and then."""

from __future__ import annotations

import threading

import pytest

from tests.app.cluster import TINY
from tests.app.databases import postgres_url
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.jobs.process_registry import ProcessEntry
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.experiment_table import ExperimentTable
from valleyscope.app.storage.migrations import migrate
from valleyscope.app.worker import cancel_watch as module
from valleyscope.app.worker.cancel_watch import CHECK_SECONDS, CancelWatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_a_notification_of_its_own_experiment_makes_a_check_due(clock: list[float]) -> None:
    cancel_watch = CancelWatch(lambda: True)
    cancel_watch.watch("mine")
    assert not cancel_watch.check_due
    cancel_watch.on_notify("another")
    assert not cancel_watch.check_due
    cancel_watch.on_notify("mine")
    assert cancel_watch.check_due
    cancel_watch.start_check()
    assert not cancel_watch.check_due
    clock[0] += CHECK_SECONDS
    assert cancel_watch.check_due


@pytest.mark.usefixtures("clock")
def test_a_notification_during_a_check_makes_another_one_due() -> None:
    cancel_watch = CancelWatch(lambda: True)
    cancel_watch.watch("mine")
    cancel_watch.start_check()
    cancel_watch.on_notify("mine")
    assert cancel_watch.check_due


@pytest.mark.usefixtures("clock")
def test_without_notifications_a_check_is_always_due_and_once_after_they_return() -> None:
    listening = [False]
    cancel_watch = CancelWatch(lambda: listening[0])
    cancel_watch.watch("mine")
    cancel_watch.start_check()
    assert cancel_watch.check_due
    listening[0] = True
    assert not cancel_watch.check_due
    cancel_watch.on_regained()
    assert cancel_watch.check_due


def test_a_worker_is_notified_that_its_experiment_is_cancelled() -> None:
    database = Database(postgres_url())
    with database.exclusive("start"):
        migrate(database)
    experiment_table, cancel_watch, notified = (
        ExperimentTable(database),
        CancelWatch(lambda: process.lease.listening),
        threading.Event(),
    )

    def on_notify(experiment: str) -> None:
        cancel_watch.on_notify(experiment)
        notified.set()

    process = ProcessEntry(database, "worker", on_notify=on_notify)
    with database.write() as connection:
        row = experiment_table.add(connection, Spec.model_validate(TINY), key=None, priority=100)
    cancel_watch.watch(row.id)
    assert not cancel_watch.check_due
    with database.write() as connection:
        experiment_table.cancel(connection, row.id)
    assert notified.wait(120)
    assert cancel_watch.check_due
    process.lease.release()
    database.close()
