"""Leases: a process holds one while it is alive.

With SQLite a lease is a lock on a file, which the kernel releases when the process ends. With Postgres it is an
advisory lock of a separate session, which the server ends when it is silent for too long. So a machine that vanishes, a
cut connection and a process that is stopped for long lose their lease by the clock of the server alone. The same
session receives notifications (`valleyscope.app.storage.cancel_notify`).
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, cast

import psycopg
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.storage.cancel_notify import CHANNEL
from valleyscope.app.storage.database import Database, lock_key

log = logging.getLogger(__name__)

_FOLDER = "leases"
LEASE_SECONDS = 15.0
"""How long a process may be silent before the server ends its lease."""
_WAIT_SECONDS = 0.25
_STABLE_SECONDS = 4.0
_STOP_SECONDS = 5.0
_BEATS = 6  # heartbeats in the time of a lease
_RIVAL_SECONDS = 5.0  # a reaper that tests whether a lease is free releases it sooner


class Lease(Protocol):
    """A process counts as alive while it holds its lease."""

    @property
    def stable(self) -> bool:
        """Whether it has been held so long that every other living process holds its lease, too.

        After a restart of Postgres every lease is lost, and every process looks dead until it reconnects.
        """
        ...

    @property
    def listening(self) -> bool:
        """Whether notifications arrive now."""
        ...

    def release(self) -> None: ...


def hold_lease(
    database: Database,
    name: str,
    *,
    seconds: float = LEASE_SECONDS,
    on_regained: Callable[[], None] = lambda: None,
    on_taken: Callable[[], None] = lambda: None,
    on_notify: Callable[[str], None] | None = None,
) -> Lease:
    """Take the lease of this process, or of something that it alone may use.

    Called in a thread of the lease: `on_regained` when a lost lease is held again, `on_taken` when another process
    holds a lost lease, `on_notify` with each notification.
    """
    if database.path is not None:
        return _FileLease(_file(database.path, name))
    return _SessionLease(database, name, seconds, on_regained, on_taken, on_notify)


@contextmanager
def take_lease(database: Database, name: str) -> Iterator[bool]:
    """Try to hold the lease of another process for a block; True means that its owner is gone."""
    if database.path is not None:
        with _take_file(_file(database.path, name)) as taken:
            yield taken
    else:
        with _take_session(database, name) as taken:
            yield taken


def free_leases(database: Database, names: Sequence[str]) -> list[str]:
    """The names whose lease no process holds now, by one query."""
    if database.path is not None:
        found = []
        for name in names:
            with _take_file(_file(database.path, name)) as free:
                if free:
                    found.append(name)
        return found
    held = sa.text(
        "SELECT (classid::bigint << 32) | objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND granted "
        "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with database.read() as connection:
        keys = set(connection.execute(held).scalars())
    return [name for name in names if lock_key(name) not in keys]


def forget_lease(database: Database, name: str) -> None:
    """Remove the file that the lease of a dead process left."""
    if database.path is not None:
        _file(database.path, name).unlink(missing_ok=True)


def _file(database: Path, name: str) -> Path:
    return database.parent / _FOLDER / f"{name}.lease"


class _FileLease:
    stable = True
    listening = False

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        self._path = path
        self._file = path.open("w", encoding="ascii")
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def release(self) -> None:
        self._path.unlink(missing_ok=True)
        self._file.close()


@contextmanager
def _take_file(path: Path) -> Iterator[bool]:
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        yield True  # released, or never taken
        return
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


class _SessionLease:
    """An advisory lock, taken again in a thread whenever the server drops the session."""

    def __init__(
        self,
        database: Database,
        name: str,
        seconds: float,
        on_regained: Callable[[], None],
        on_taken: Callable[[], None],
        on_notify: Callable[[str], None] | None,
    ) -> None:
        self._database = database
        self._key = {"key": lock_key(name)}
        self._seconds = seconds
        self._on_regained = on_regained
        self._on_taken = on_taken
        self._on_notify = on_notify
        self._released = threading.Event()
        self._since = time.monotonic()
        self._connection: sa.Connection | None = self._acquire()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    @property
    def stable(self) -> bool:
        return self._connection is not None and time.monotonic() - self._since > _STABLE_SECONDS

    @property
    def listening(self) -> bool:
        return self._on_notify is not None and self._connection is not None

    def release(self) -> None:
        self._released.set()
        self._thread.join(_STOP_SECONDS)
        if self._connection is not None and not self._thread.is_alive():
            with suppress(SQLAlchemyError):
                self._connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), self._key)
            self._drop()

    def _acquire(self) -> sa.Connection:
        # Not a connection of the pool, which may recycle it and with it the lock.
        connection = _single_connection(self._database)
        try:
            connection.execute(sa.text(f"SET idle_session_timeout = {int(1000 * self._seconds)}"))
            patience: float | None = time.monotonic() + _RIVAL_SECONDS
            while not connection.execute(sa.text("SELECT pg_try_advisory_lock(:key)"), self._key).scalar():
                if self._released.wait(0.1):  # a reaper holds it while it tests whether this process is dead
                    break
                if patience is not None and time.monotonic() > patience:
                    patience = None
                    self._on_taken()
            if self._on_notify is not None:
                _listen(connection, self._on_notify)
        except BaseException:
            connection.close()
            raise
        self._since = time.monotonic()
        return connection

    def _keep(self) -> None:
        beaten = time.monotonic()
        while not self._released.is_set():
            try:
                received = self._wait()
                due = time.monotonic() - beaten >= self._seconds / _BEATS
                if self._connection is None:
                    self._connection = self._acquire()
                    self._on_regained()
                elif due or received:
                    beaten = time.monotonic()
                    self._connection.execute(sa.text("SELECT 1"))
                    if self._on_notify is not None:
                        _handle_rest(self._connection, self._on_notify)
            except (SQLAlchemyError, psycopg.Error) as error:
                log.warning("the lease was lost with the connection (%s); taking it again", error)
                self._drop()

    def _wait(self) -> bool:
        """Wait until it is time for a heartbeat, or the server sends something; returns whether it does."""
        if self._connection is None:
            self._released.wait(_WAIT_SECONDS)
            return False
        return _has_data(self._connection, _WAIT_SECONDS)

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None


def _has_data(connection: sa.Connection, seconds: float) -> bool:
    """Whether the server sends something within some seconds. Waiting costs it nothing."""
    poll = select.poll()
    poll.register(_driver(connection).fileno(), select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def _listen(connection: sa.Connection, on_notify: Callable[[str], None]) -> None:
    _driver(connection).add_notify_handler(lambda notice: on_notify(notice.payload))
    connection.execute(sa.text(f"LISTEN {CHANNEL}"))


def _handle_rest(connection: sa.Connection, on_notify: Callable[[str], None]) -> None:
    """Handle notifications that arrived right after the answer to a statement: psycopg does not look for those."""
    while notice := _driver(connection).pgconn.notifies():
        on_notify(notice.extra.decode())


def _driver(connection: sa.Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.dbapi_connection)


@contextmanager
def _take_session(database: Database, name: str) -> Iterator[bool]:
    key = {"key": lock_key(name)}
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        taken = bool(connection.execute(sa.text("SELECT pg_try_advisory_lock(:key)"), key).scalar())
        try:
            yield taken
        finally:
            if taken:
                connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), key)


def _single_connection(database: Database) -> sa.Connection:
    engine = sa.create_engine(
        database.engine.url, poolclass=sa.NullPool, isolation_level="AUTOCOMMIT", connect_args=database.limits
    )
    return engine.connect()
