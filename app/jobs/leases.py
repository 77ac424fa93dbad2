"""Leases: what a living process holds, and loses by dying, however it dies.

Beside SQLite a lease is a flock on a file, which the kernel drops with its owner, also when the owner is merely
stopped for a while. In Postgres it is an advisory lock of a session of its own; the server ends the session, and with
it the lease, when it has heard nothing on it for a while. So a machine that vanishes, a wire that is cut and a process
that is stopped for long all lose their lease, by the clock of the server alone. The same session brings tidings.
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
"""For so long a process may be silent before the server gives its lease up."""
_LOOK_SECONDS = 0.25
_SETTLING_SECONDS = 4.0
_STOP_PATIENCE = 5.0
_BEATS = 6  # signs of life in the time of a lease
_RIVAL_SECONDS = 5.0  # whoever merely tries whether a lease is free lets go of it sooner


class Lease(Protocol):
    """This process is alive for as long as it holds its lease."""

    @property
    def stable(self) -> bool:
        """Whether it has been held for so long that whoever else is alive holds theirs, too.

        After a restart of Postgres every lease is lost, and everyone looks dead until they are back.
        """
        ...

    @property
    def listening(self) -> bool:
        """Whether tidings would be heard now."""
        ...

    def release(self) -> None: ...


def hold_lease(
    database: Database,
    name: str,
    *,
    seconds: float = LEASE_SECONDS,
    back: Callable[[], None] = lambda: None,
    taken: Callable[[], None] = lambda: None,
    hear: Callable[[str], None] | None = None,
) -> Lease:
    """Take the lease of this process, or of something that it alone may use.

    `back` is called when a lease that was lost is held again, for in between others may have buried this process.
    `taken` is called when it was lost and another holds it now; for names that are unique to a start nobody does.
    `hear` is called, in a thread of the lease, with what somebody tells (`valleyscope.app.storage.cancel_notify`).
    """
    if database.path is not None:
        return _FileLease(_file(database.path, name))
    return _SessionLease(database, name, seconds, back, taken, hear)


@contextmanager
def take_lease(database: Database, name: str) -> Iterator[bool]:
    """Try to take the lease of another process for the length of a block: True means that its owner is gone."""
    if database.path is not None:
        with _take_file(_file(database.path, name)) as taken:
            yield taken
    else:
        with _take_session(database, name) as taken:
            yield taken


def free_leases(database: Database, names: Sequence[str]) -> list[str]:
    """Those of the names whose lease nobody holds at this moment: one question, however many there are."""
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
    """Remove what the lease of a dead process left behind."""
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
        back: Callable[[], None],
        taken: Callable[[], None],
        hear: Callable[[str], None] | None,
    ) -> None:
        self._database = database
        self._key = {"key": lock_key(name)}
        self._seconds = seconds
        self._back = back
        self._taken = taken
        self._hear = hear
        self._released = threading.Event()
        self._since = time.monotonic()
        self._connection: sa.Connection | None = self._acquire()
        self._thread = threading.Thread(target=self._keep, name="lease", daemon=True)
        self._thread.start()

    @property
    def stable(self) -> bool:
        return self._connection is not None and time.monotonic() - self._since > _SETTLING_SECONDS

    @property
    def listening(self) -> bool:
        return self._hear is not None and self._connection is not None

    def release(self) -> None:
        self._released.set()
        self._thread.join(_STOP_PATIENCE)
        if self._connection is not None and not self._thread.is_alive():
            with suppress(SQLAlchemyError):
                self._connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), self._key)
            self._drop()

    def _acquire(self) -> sa.Connection:
        # Its own connection, not one of the pool: a pool may recycle it and with it the lock.
        connection = _single_connection(self._database)
        try:
            connection.execute(sa.text(f"SET idle_session_timeout = {int(1000 * self._seconds)}"))
            patience: float | None = time.monotonic() + _RIVAL_SECONDS
            while not connection.execute(sa.text("SELECT pg_try_advisory_lock(:key)"), self._key).scalar():
                if self._released.wait(0.1):  # somebody tries whether we are dead, and lets go again
                    break
                if patience is not None and time.monotonic() > patience:
                    patience = None
                    self._taken()
            if self._hear is not None:
                _listen(connection, self._hear)
        except BaseException:
            connection.close()
            raise
        self._since = time.monotonic()
        return connection

    def _keep(self) -> None:
        beaten = time.monotonic()
        while not self._released.is_set():
            try:
                news = self._wait()
                due = time.monotonic() - beaten >= self._seconds / _BEATS
                if self._connection is None:
                    self._connection = self._acquire()
                    self._back()
                elif due or news:
                    beaten = time.monotonic()
                    self._connection.execute(sa.text("SELECT 1"))
                    if self._hear is not None:
                        _hear_rest(self._connection, self._hear)
            except (SQLAlchemyError, psycopg.Error) as error:
                log.warning("the lease was lost with the connection (%s); taking it again", error)
                self._drop()

    def _wait(self) -> bool:
        """Until it is time to look, or the server says something without being asked: tidings, or that it ends."""
        if self._connection is None:
            self._released.wait(_LOOK_SECONDS)
            return False
        return _has_news(self._connection, _LOOK_SECONDS)

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(SQLAlchemyError):
                self._connection.invalidate()
                self._connection.close()
            self._connection = None


def _has_news(connection: sa.Connection, seconds: float) -> bool:
    """Whether the server sends something within some seconds without being asked. Waiting costs it nothing."""
    poll = select.poll()
    poll.register(_driver(connection).fileno(), select.POLLIN)
    return bool(poll.poll(1000 * seconds))


def _listen(connection: sa.Connection, hear: Callable[[str], None]) -> None:
    _driver(connection).add_notify_handler(lambda notice: hear(notice.payload))
    connection.execute(sa.text(f"LISTEN {CHANNEL}"))


def _hear_rest(connection: sa.Connection, hear: Callable[[str], None]) -> None:
    """Tidings that came right behind the answer to a statement, after which psycopg looks for none."""
    while notice := _driver(connection).pgconn.notifies():
        hear(notice.extra.decode())


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
