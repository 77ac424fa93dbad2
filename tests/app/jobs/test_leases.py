"""Leases tell living processes from dead ones, and the reaper requeues jobs of dead ones only."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
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
process_entry = ProcessEntry(Database(sys.argv[1]), "worker", lease_seconds=600.0)  # it is not lost by the clock
print(process_entry.id, flush=True)
threading.Event().wait()
"""


@contextmanager
def another_process(database: Database) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A registered process that does nothing."""
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
    process_entry = ProcessEntry(database, "api")
    jobs = JobQueue(database, process_entry.id, GPU, lambda *_: None)
    jobs.connect()
    until(lambda: process_entry.lease.stable)
    yield Reaper(database, jobs, process_entry)
    process_entry.lease.release()


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
    monkeypatch.setattr(leases, "_STABLE_SECONDS", 2.0)
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


def test_dead_processes_are_deregistered_after_the_grace_and_living_ones_stay(
    database: Database, reaper: Reaper
) -> None:
    with another_process(database) as (living, alive), another_process(database) as (dying, dead):
        os.kill(living.pid, signal.SIGSTOP)
        dying.kill()
        until(lambda: is_free(database, dead))
        began = time.monotonic()

        def deregistered() -> bool:
            reaper.check()
            return dead not in ids(database)

        until(deregistered)
        assert time.monotonic() - began >= GRACE_SECONDS
        assert alive in ids(database)


def test_a_process_that_comes_back_within_the_grace_keeps_its_jobs(database: Database, reaper: Reaper) -> None:
    process_entry = ProcessEntry(database, "worker")
    process_entry.lease.release()
    reaper.check()
    lease = hold_lease(database, process_entry.id)
    began = time.monotonic()
    while time.monotonic() - began < GRACE_SECONDS + 0.5:
        reaper.check()
        time.sleep(0.1)
    assert process_entry.id in ids(database)
    lease.release()


def test_a_process_that_is_cut_off_within_a_statement_keeps_no_locks(database: Database, reaper: Reaper) -> None:
    """Postgres has the first half of a pipeline, and waits for the other half with the transaction open."""
    if database.sqlite:
        return  # the kernel releases the locks of the dead
    url = database.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    dead = Database(database.engine.url.render_as_string(hide_password=False))
    process_entry = ProcessEntry(dead, "worker")
    with closing(psycopg.connect(url, application_name=process_entry.id, autocommit=True)) as session:
        session.pgconn.enter_pipeline_mode()
        for statement in ("BEGIN", f"UPDATE valley_processes SET host = 'gone' WHERE id = '{process_entry.id}'"):
            session.pgconn.send_query_params(statement.encode(), None)
        session.pgconn.send_flush_request()
        session.pgconn.flush()
        until(lambda: is_locked(database, process_entry.id))
        process_entry.lease.release()

        def deregistered() -> bool:
            reaper.check()
            return process_entry.id not in ids(database)

        until(deregistered)
    dead.close()


def is_locked(database: Database, process: str) -> bool:
    """Whether a transaction has locked the entry of a process."""
    lock = sa.text("SELECT id FROM valley_processes WHERE id = :id FOR UPDATE SKIP LOCKED")
    with database.write() as connection:
        return connection.execute(lock, {"id": process}).scalar() is None


def ids(database: Database) -> list[str]:
    with database.read() as connection:
        return process_ids(connection)


def test_notifications_arrive_when_their_transaction_ends() -> None:
    database = Database(postgres_url())
    received: queue.Queue[str] = queue.Queue()
    lease = hold_lease(database, "listener", on_notify=received.put)
    assert lease.listening
    with database.write() as connection:
        notify_cancel(connection, "first")
        with pytest.raises(queue.Empty):
            received.get(timeout=0.5)
    assert received.get(timeout=60) == "first"
    for number in range(200):  # some of them come right behind the answer to a heartbeat
        with database.write() as connection:
            notify_cancel(connection, f"another-{number}")
    assert [received.get(timeout=60) for _ in range(200)] == [f"another-{number}" for number in range(200)]
    lease.release()
    assert not lease.listening
    database.close()


def test_a_lost_session_listens_again() -> None:
    database = Database(postgres_url())
    received: queue.Queue[str] = queue.Queue()
    lease = hold_lease(database, "listener", on_notify=received.put, on_regained=lambda: received.put("back"))
    with database.write() as connection:
        connection.execute(
            sa.text(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE query NOT LIKE '%terminate%' AND datname = current_database() AND pid <> pg_backend_pid()"
            )
        )
    assert received.get(timeout=60) == "back"
    assert lease.listening
    with database.write() as connection:
        notify_cancel(connection, "told")
    assert received.get(timeout=60) == "told"
    lease.release()
    database.close()
