"""A worker asks whether its task is wanted when there is a reason to, and now and then."""

from __future__ import annotations

import threading

import pytest

from app.experiments.spec import Spec
from app.runners import ear as module
from app.runners.ear import ASK_SECONDS, Ear
from app.runners.roster import Member
from app.storage.catalogue import Catalogue
from app.storage.database import Database
from app.storage.migrations import migrate
from tests.app.cluster import TINY
from tests.app.databases import postgres_url


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_it_is_curious_when_its_own_experiment_is_told_of(clock: list[float]) -> None:
    ear = Ear(lambda: True)
    ear.listen_for("mine")
    assert not ear.curious
    ear.hear("another")
    assert not ear.curious
    ear.hear("mine")
    assert ear.curious
    ear.note_answer()
    assert not ear.curious
    clock[0] += ASK_SECONDS
    assert ear.curious


@pytest.mark.usefixtures("clock")
def test_what_is_told_while_it_asks_makes_it_ask_again() -> None:
    ear = Ear(lambda: True)
    ear.listen_for("mine")
    ear.note_answer()
    ear.hear("mine")
    assert ear.curious


@pytest.mark.usefixtures("clock")
def test_it_asks_always_where_nobody_tells_and_once_after_it_was_deaf() -> None:
    listening = [False]
    ear = Ear(lambda: listening[0])
    ear.listen_for("mine")
    ear.note_answer()
    assert ear.curious
    listening[0] = True
    assert not ear.curious
    ear.hear_everything()
    assert ear.curious


def test_a_worker_hears_that_its_experiment_is_cancelled() -> None:
    database = Database(postgres_url())
    with database.alone("start"):
        migrate(database)
    catalogue, ear, heard = Catalogue(database), Ear(lambda: member.lease.listening), threading.Event()

    def hear(experiment: str) -> None:
        ear.hear(experiment)
        heard.set()

    member = Member(database, "worker", hear=hear)
    with database.write() as connection:
        row = catalogue.add(connection, Spec.model_validate(TINY), key=None, priority=100)
    assert catalogue.claim(row.id, row.run, "api") is not None
    ear.listen_for(row.id)
    assert not ear.curious
    with database.write() as connection:
        catalogue.cancel(connection, row.id)
    assert heard.wait(120)
    assert ear.curious
    member.lease.release()
    database.close()
