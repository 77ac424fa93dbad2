"""The one database of a service: our catalogue and the queues of DBOS, in SQLite or Postgres."""

from __future__ import annotations

import fcntl
import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from valleyscope.app.storage.db_errors import is_transient, short_message

log = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_MILLISECONDS = 30_000
_POOL = 20
_ALONE_SECONDS = 0.1
_LONGEST_ALONE_SECONDS = 2.0

_POSTGRES: Mapping[str, str] = {
    "connect_timeout": "5",
    # A machine that vanishes, or a wire that is cut, says nothing: both ends give a silent peer up by themselves.
    "keepalives_idle": "5",
    "keepalives_interval": "3",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "options": "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=3 -c tcp_keepalives_count=3 "
    # A process that is stopped in the middle of a transaction must not keep its locks from all the others.
    "-c tcp_user_timeout=15s -c idle_in_transaction_session_timeout=10s",
}


class Stopped(RuntimeError):
    """The process is shutting down, so the database is not waited for any longer."""


class Database:
    """An engine with the settings that both kinds of database need, and transactions on it."""

    def __init__(self, url: str, *, connections: int = _POOL) -> None:
        """`connections` of Postgres are kept open; more are made for as long as they are needed."""
        parsed = sa.make_url(url)
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if self.sqlite:
            if not parsed.database or parsed.database == ":memory:":
                raise ValueError(f"database={url!r} must name a file: jobs outlive the process that submits them")
            self.path: Path | None = Path(parsed.database).absolute()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.engine = sa.create_engine(parsed, pool_size=_POOL, max_overflow=0)
            event.listen(self.engine, "connect", _configure_sqlite)
            self._reader = self.engine
        else:
            self.path = None
            parsed = parsed.set(drivername="postgresql+psycopg")
            # What the operator gave in the address goes first.
            self.limits = {name: value for name, value in _POSTGRES.items() if name not in parsed.query}
            self.engine = sa.create_engine(
                parsed,
                pool_size=connections,
                max_overflow=_POOL - connections,
                pool_pre_ping=True,
                connect_args=self.limits,
            )
            # Each statement by itself, as Postgres would see them in a transaction, too. What SQLAlchemy ends such a
            # transaction with is a rollback, at which psycopg drops all statements that it has prepared, and then
            # Postgres parses and plans each one anew: more work than the reading itself.
            self._reader = self.engine.execution_options(isolation_level="AUTOCOMMIT")
            event.listen(self.engine, "do_connect", self._add_session_name)
        self._session_name: str | None = None

    def name_sessions(self, name: str) -> None:
        """Give the sessions of this process in Postgres a name, by which `end_sessions` finds them."""
        self._session_name = name
        if not self.sqlite:
            self.engine.dispose()  # the sessions so far have no name

    def end_sessions(self, name: str) -> None:
        """End the sessions of a dead process in Postgres, and with them their transactions.

        Postgres gives up a session that is silent between two statements. One that was cut off within a statement it
        waits for, as long as something on the way (a proxy, the kernel of a stopped process) answers for the client.
        """
        if self.sqlite:
            return
        named = sa.text(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = :name "
            "AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
        )
        with self.read() as connection:
            connection.execute(named, {"name": name})

    def _add_session_name(self, _dialect: object, _record: object, _arguments: object, options: dict[str, Any]) -> None:
        if self._session_name is not None:
            options["application_name"] = self._session_name

    def close(self) -> None:
        self.engine.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        with self._reader.connect() as connection:
            yield connection

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[sa.Connection]:
        """A transaction that writes, and holds SQLite's write lock from its start, so that what it reads stays true.

        SQLite flushes a commit to the disk when it is `durable`; others survive the death of any process, and a power
        cut may take back the last ones, in order. What we promise a client is durable; what a worker reports is not,
        since it would be computed again.
        """
        with self.engine.connect() as connection:
            if self.sqlite:
                connection.exec_driver_sql(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.commit()
            except BaseException:
                connection.rollback()
                raise

    @contextmanager
    def exclusive(self, what: str) -> Iterator[None]:
        """One process at a time does this: both kinds of migrations fail when two start them at once."""
        if self.path is not None:
            with self.path.with_name(f"{self.path.name}.{what}").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
        else:
            with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                key = {"key": lock_key(what)}
                # Not pg_advisory_lock: whoever waits inside it holds a snapshot, DBOS creates indexes concurrently and
                # waits for all snapshots, and Postgres cannot see that the two wait for each other.
                delay = _ALONE_SECONDS
                while not connection.execute(sa.text("SELECT pg_try_advisory_lock(:key)"), key).scalar():
                    time.sleep(delay * random.uniform(0.5, 1.0))
                    delay = min(1.3 * delay, _LONGEST_ALONE_SECONDS)  # a hundred may be waiting for their turn
                try:
                    yield
                finally:
                    connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), key)

    def with_retry(self, action: Callable[[], T], stopping: threading.Event) -> T:
        """Repeat an action until the database lets it happen: the disk may be full, or the server be restarting."""
        delay = 0.2
        while True:
            try:
                return action()
            except (DBAPIError, OSError) as error:
                if not is_transient(error):
                    raise
                if stopping.is_set():
                    raise Stopped(f"the database was not reachable at the end: {short_message(error)}") from error
                log.warning("the database refuses (%s); trying again in %.1f s", short_message(error), delay)
                stopping.wait(delay)
                delay = min(2 * delay, 2.0)


def lock_key(name: str) -> int:
    """The number of a Postgres advisory lock: 64 bits of a name."""
    return int.from_bytes(blake2b(f"valleyscope {name}".encode(), digest_size=8).digest(), signed=True)


def _configure_sqlite(connection: Any, _record: Any) -> None:
    # DBOS needs IMMEDIATE on an engine that it did not make itself.
    connection.isolation_level = "IMMEDIATE"
    for pragma in (f"busy_timeout={_BUSY_MILLISECONDS}", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")
