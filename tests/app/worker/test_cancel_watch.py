"""A worker asks whether its task is wanted when there is a reason to, and now and then."""

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
from valleyscope.app.worker.cancel_watch import ASK_SECONDS, CancelWatch


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_it_is_curious_when_its_own_experiment_is_told_of(clock: list[float]) -> None:
    cancel_watch = CancelWatch(lambda: True)
    cancel_watch.listen_for("mine")
    assert not cancel_watch.curious
    cancel_watch.hear("another")
    assert not cancel_watch.curious
    cancel_watch.hear("mine")
    assert cancel_watch.curious
    cancel_watch.note_answer()
    assert not cancel_watch.curious
    clock[0] += ASK_SECONDS
    assert cancel_watch.curious


@pytest.mark.usefixtures("clock")
def test_what_is_told_while_it_asks_makes_it_ask_again() -> None:
    cancel_watch = CancelWatch(lambda: True)
    cancel_watch.listen_for("mine")
    cancel_watch.note_answer()
    cancel_watch.hear("mine")
    assert cancel_watch.curious


@pytest.mark.usefixtures("clock")
def test_it_asks_always_where_nobody_tells_and_once_after_it_was_deaf() -> None:
    listening = [False]
    cancel_watch = CancelWatch(lambda: listening[0])
    cancel_watch.listen_for("mine")
    cancel_watch.note_answer()
    assert cancel_watch.curious
    listening[0] = True
    assert not cancel_watch.curious
    cancel_watch.hear_everything()
    assert cancel_watch.curious


def test_a_worker_hears_that_its_experiment_is_cancelled() -> None:
    database = Database(postgres_url())
    with database.exclusive("start"):
        migrate(database)
    experiment_table, cancel_watch, heard = (
        ExperimentTable(database),
        CancelWatch(lambda: member.lease.listening),
        threading.Event(),
    )

    def hear(experiment: str) -> None:
        cancel_watch.hear(experiment)
        heard.set()

    member = ProcessEntry(database, "worker", hear=hear)
    with database.write() as connection:
        row = experiment_table.add(connection, Spec.model_validate(TINY), key=None, priority=100)
    assert experiment_table.claim(row.id, row.run, "api") is not None
    cancel_watch.listen_for(row.id)
    assert not cancel_watch.curious
    with database.write() as connection:
        experiment_table.cancel(connection, row.id)
    assert heard.wait(120)
    assert cancel_watch.curious
    member.lease.release()
    database.close()
