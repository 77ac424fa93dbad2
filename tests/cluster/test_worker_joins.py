"""A server that is started together with its database waits for it, and refuses one that will never do at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.exc import OperationalError

from tests.app.servers import Server, serving
from tests.cluster.postgres import Postgres
from valleyscope.app.storage.db_errors import is_starting


def test_a_server_waits_for_a_database_that_starts_later(tmp_path: Path, postgres: Postgres) -> None:
    log = tmp_path / "home.log"
    postgres.create("arrival")
    postgres.stop()

    def start() -> None:
        deadline = time.monotonic() + 120
        while not log.exists() or "the database is not ready" not in log.read_text(encoding="utf-8"):
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
        postgres.start()

    later = threading.Thread(target=start)
    later.start()
    try:
        with serving(tmp_path / "home", "--database", postgres.url("arrival")) as server:
            assert server.client.get("/readyz").status_code == 200
            assert "the database is not ready" in server.log
    finally:
        later.join()


def test_a_database_that_does_not_exist_is_refused_at_once(tmp_path: Path, postgres: Postgres) -> None:
    with (
        pytest.raises(AssertionError, match=r"the database cannot be used .*does not exist"),
        serving(tmp_path / "home", "--database", postgres.url("nowhere")) as server,
    ):
        assert isinstance(server, Server)
    assert "the database is not ready" not in (tmp_path / "home.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("connection failed: Connection refused\n\tIs the server running on that host", True),
        ("connection failed: FATAL:  the database system is starting up", True),
        ('connection failed: FATAL:  password authentication failed for user "valley"', False),
        ('connection failed: FATAL:  database "nowhere" does not exist', False),
        ("connection failed: FATAL:  sorry, too many clients already", False),
    ],
)
def test_a_server_that_starts_is_told_from_one_that_refuses(words: str, expected: bool) -> None:
    assert is_starting(OperationalError("SELECT 1", {}, psycopg.OperationalError(words))) is expected
