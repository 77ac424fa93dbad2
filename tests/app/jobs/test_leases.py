"""Leases tell the living from the dead, and the reaper robs nobody who lives."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from dbos import DBOS

from tests.app.databases import postgres_url
from tests.waiting import until
from valleyscope.app.jobs import leases
from valleyscope.app.jobs.leases import hold_lease, take_lease
from valleyscope.app.jobs.process_registry import ProcessEntry, process_ids
from valleyscope.app.jobs.queue import GPU, JobQueue
from valleyscope.app.jobs.reaper import GRACE_SECONDS, Reaper
from valleyscope.app.storage.cancel_notify import notify_cancel
from valleyscope.app.storage.database import Database, lock_key

_HOLDER = """
import sys, threading
from valleyscope.app.storage.database import Database
from valleyscope.app.jobs.process_registry import ProcessEntry
member = ProcessEntry(Database(sys.argv[1]), "worker", lease_seconds=600.0)  # so it is not by the clock that it is lost
print(member.id, flush=True)
threading.Event().wait()
"""


@contextmanager
def another_process(database: Database) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process on the roster that does nothing but live."""
    url = database.engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-c", _HOLDER, url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def is_free(database: Database, name: str) -> bool:
    with take_lease(database, name) as free:
        return free


@pytest.fixture
def reaper(database: Database) -> Iterator[Reaper]:
    url = database.engine.url.render_as_string(hide_password=False)
    DBOS.migrate(url)
    member = ProcessEntry(database, "api")
    jobs = JobQueue(database, member.id, GPU, lambda *_: None)
    jobs.connect()
    until(lambda: member.lease.stable)
    yield Reaper(database, jobs, member)
    member.lease.release()


def test_a_lease_is_held_until_its_owner_is_killed(database: Database) -> None:
    with another_process(database) as (process, name):
        assert not is_free(database, name)
        process.kill()
        until(lambda: is_free(database, name))


def test_a_process_that_is_stopped_keeps_its_lease(database: Database) -> None:
    with another_process(database) as (process, name):
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(0.5)
        assert not is_free(database, name)
        os.kill(process.pid, signal.SIGCONT)


def test_a_released_lease_is_free(database: Database) -> None:
    lease = hold_lease(database, "mine")
    assert not is_free(database, "mine")
    lease.release()
    assert is_free(database, "mine")


def test_a_lease_comes_back_after_the_server_has_dropped_it(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.sqlite:
        return  # the kernel does not drop locks of the living
    monkeypatch.setattr(leases, "_SETTLING_SECONDS", 2.0)
    lease = hold_lease(database, "mine")
    until(lambda: lease.stable)
    first, lost_after = holder(database, "mine"), time.monotonic()
    with database.write() as connection:
        connection.execute(sa.text("SELECT pg_terminate_backend(:pid)"), {"pid": first})
    until(lambda: holder(database, "mine") not in (None, first))
    assert not lease.stable or time.monotonic() - lost_after > 2.0
    until(lambda: lease.stable)
    lease.release()


def holder(database: Database, name: str) -> int | None:
    """The session of Postgres that has a lease."""
    key = lock_key(name)
    halves = {"high": (key >> 32) & (2**32 - 1), "low": key & (2**32 - 1)}
    held = sa.text("SELECT pid FROM pg_locks WHERE classid = :high AND objid = :low AND granted")
    with database.read() as connection:
        found: int | None = connection.execute(held, halves).scalar()
    return found


def test_the_dead_are_struck_off_after_the_grace_and_the_living_stay(database: Database, reaper: Reaper) -> None:
    with another_process(database) as (living, alive), another_process(database) as (dying, dead):
        os.kill(living.pid, signal.SIGSTOP)
        dying.kill()
        until(lambda: is_free(database, dead))
        began = time.monotonic()

        def struck() -> bool:
            reaper.look()
            return dead not in ids(database)

        until(struck)
        assert time.monotonic() - began >= GRACE_SECONDS
        assert alive in ids(database)


def test_whoever_comes_back_within_the_grace_is_not_robbed(database: Database, reaper: Reaper) -> None:
    member = ProcessEntry(database, "worker")
    member.lease.release()
    reaper.look()
    lease = hold_lease(database, member.id)
    began = time.monotonic()
    while time.monotonic() - began < GRACE_SECONDS + 0.5:
        reaper.look()
        time.sleep(0.1)
    assert member.id in ids(database)
    lease.release()


def ids(database: Database) -> list[str]:
    with database.read() as connection:
        return process_ids(connection)


def test_who_holds_a_lease_hears_what_is_told_and_nothing_before_its_transaction_ends() -> None:
    database = Database(postgres_url())
    heard: queue.Queue[str] = queue.Queue()
    lease = hold_lease(database, "listener", hear=heard.put)
    assert lease.listening
    with database.write() as connection:
        notify_cancel(connection, "first")
        with pytest.raises(queue.Empty):
            heard.get(timeout=0.5)
    assert heard.get(timeout=60) == "first"
    for number in range(200):  # some of them come right behind the answer to a sign of life
        with database.write() as connection:
            notify_cancel(connection, f"another-{number}")
    assert [heard.get(timeout=60) for _ in range(200)] == [f"another-{number}" for number in range(200)]
    lease.release()
    assert not lease.listening
    database.close()


def test_a_session_that_was_lost_listens_again() -> None:
    database = Database(postgres_url())
    heard: queue.Queue[str] = queue.Queue()
    lease = hold_lease(database, "listener", hear=heard.put, back=lambda: heard.put("back"))
    with database.write() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query NOT LIKE '%terminate%' AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    assert heard.get(timeout=60) == "back"
    assert lease.listening
    with database.write() as connection:
        notify_cancel(connection, "told")
    assert heard.get(timeout=60) == "told"
    lease.release()
    database.close()
