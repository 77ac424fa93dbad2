"""Reads and transactions."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from tests.app.databases import postgres_url
from valleyscope.app.jobs.process_registry import deregister, process_ids
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.migrations import migrate


@pytest.fixture
def single() -> Iterator[Database]:
    """A catalogue in Postgres, and one connection to it."""
    found = Database(postgres_url(), connections=1)
    with found.exclusive("start"):
        migrate(found)
    yield found
    found.close()


def test_postgres_plans_a_repeated_query_once(single: Database) -> None:
    for _ in range(10):
        with single.read() as connection:
            process_ids(connection, "worker")
        deregister(single, "nobody")
    chosen = "SELECT statement FROM pg_prepared_statements"
    with single.read() as connection:
        prepared = list(connection.execute(sa.text(chosen)).scalars())
    assert {text.split()[0] for text in prepared if "valley_processes" in text} == {"SELECT", "DELETE"}


def test_a_read_keeps_no_transaction_open_and_a_write_does(single: Database) -> None:
    with single.read() as connection:
        process_ids(connection)
        assert _state(connection) == "idle"
    with single.write() as connection:
        process_ids(connection)
        assert _state(connection) == "idle in transaction"


def _state(connection: sa.Connection) -> str:
    """What the server takes the session of this connection to be doing, asked on another one."""
    pid = connection.connection.dbapi_connection.info.backend_pid  # type: ignore[union-attr]
    engine = sa.create_engine(connection.engine.url, poolclass=sa.NullPool)
    with engine.connect() as other:
        found = other.execute(sa.text("SELECT state FROM pg_stat_activity WHERE pid = :pid"), {"pid": pid})
        return str(found.scalar_one())
