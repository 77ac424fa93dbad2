"""What `valley doctor` finds where the service lives: its database, its home and its data. Nothing is made there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa
from rich.table import Table
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.database_url import without_secrets
from valleyscope.app.devices import devices_for
from valleyscope.app.jobs.process_registry import process_ids
from valleyscope.app.settings import Settings
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.file_store import FileStore, open_store
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.home_identity import HomeIdentity, WrongHome
from valleyscope.app.storage.migrations import found_version, steps
from valleyscope.app.storage.object_store import BadStore, StoreUnavailable
from valleyscope.app.storage.tables import processes
from valleyscope.training.sources import SOURCES, data_root

OLDEST_POSTGRES = 14
CONNECTIONS_OF_A_WORKER = 4
CONNECTIONS_BESIDE = 50
"""As docs/scaling.md says."""


def examine_premises(settings: Settings, problems: list[str]) -> Table:
    """A table of what is there; what is wrong is added to the problems."""
    table = Table(title="database, home and data", title_justify="left", show_header=False)
    store = _store(settings, problems)
    for name, found in (*_database(settings, store, problems), *_folders(settings, problems)):
        table.add_row(name, found)
    return table


def _store(settings: Settings, problems: list[str]) -> FileStore | None:
    """Write to the store, and read, list and remove it again; None where it cannot be used."""
    try:
        store = open_store(settings.store, Home(settings.home))
        store.probe()
    except (BadStore, StoreUnavailable) as error:
        problems.append(str(error))
        return None
    return store


def _database(settings: Settings, store: FileStore | None, problems: list[str]) -> Iterator[tuple[str, str]]:
    name = sa.make_url(settings.database).database
    if settings.sqlite and name and not Path(name).exists():
        yield "database", f"{name} does not exist yet: `valley serve` makes it"
        if store is not None and (store.identity() is not None or store.has_files()):
            problems.append(
                f"{store.location} has files of another database: {name} does not exist; see VALLEY_DATABASE"
            )
        return
    database = Database(settings.database, connections=1)
    try:
        yield from _answers(database, settings, problems)
        if store is not None:
            HomeIdentity(database, store).check_startable()
            yield "identity", f"{store.location} and the database belong together"
    except WrongHome as error:
        problems.append(str(error))
    except (SQLAlchemyError, OSError) as error:
        where = without_secrets(settings.database)
        yield "database", "cannot be used"
        problems.append(f"the database {where} cannot be used: {' '.join(short_message(error).split())}")
    finally:
        database.close()


def _answers(database: Database, settings: Settings, problems: list[str]) -> Iterator[tuple[str, str]]:
    with database.read() as connection:
        if database.sqlite:
            yield "database", f"SQLite {connection.execute(sa.text('SELECT sqlite_version()')).scalar()}"
            connection.rollback()
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # refused where the file cannot be written
            connection.rollback()
        else:
            yield from _postgres(connection, settings, problems)
        known, found = max(steps()), found_version(connection)
        if found is None:
            yield "tables", "none yet: `valley serve` makes them"
            return
        yield "tables", f"version {found.version}, this program knows {known}"
        if found.suits > known:
            problems.append(f"the tables have version {found.version}, this program knows {known}: upgrade valleyscope")


def _postgres(connection: sa.Connection, settings: Settings, problems: list[str]) -> Iterator[tuple[str, str]]:
    version = str(connection.execute(sa.text("SHOW server_version")).scalar())
    yield "database", f"Postgres {version}"
    number = int(connection.execute(sa.text("SHOW server_version_num")).scalar_one())
    if number < OLDEST_POSTGRES * 10_000:
        problems.append(f"a newer Postgres: this one is {version}, {OLDEST_POSTGRES} or newer is needed")
    if connection.execute(sa.text("SHOW transaction_read_only")).scalar() == "on":
        problems.append("a database that can be written: this one is read-only, such as a standby")
    alive = len(process_ids(connection, "worker")) if sa.inspect(connection).has_table(processes.name) else 0
    workers = max(alive, len(devices_for(settings.workers)))
    needed = CONNECTIONS_BESIDE + CONNECTIONS_OF_A_WORKER * workers
    allowed = int(connection.execute(sa.text("SHOW max_connections")).scalar_one())
    yield "connections", f"{allowed} allowed (max_connections), {needed} needed for {workers} workers"
    if allowed < needed:
        problems.append(f"connections of Postgres: raise max_connections from {allowed} to {needed} (docs/scaling.md)")


def _folders(settings: Settings, problems: list[str]) -> Iterator[tuple[str, str]]:
    home, data = settings.home, data_root(settings.data)
    for name, folder in (("home", home), ("data", data)):
        trouble = _trouble(folder)
        yield name, f"{folder}{'' if folder.exists() else ', made when it is needed'}"
        try:
            yield f"free disk of {name}", f"{shutil.disk_usage(_existing(folder)).free / 2**30:.1f} GiB"
        except OSError as error:
            trouble = trouble or error.strerror or str(error)
        # A folder with all data sets in it may well be read-only.
        if trouble is not None and (name == "home" or any(source.missing_files(data) for source in SOURCES.values())):
            problems.append(f"{name}={str(folder)!r} cannot be written ({trouble}): make room or give the rights")


def _trouble(folder: Path) -> str | None:
    """Why files cannot be written in a folder, or why it could not be made."""
    try:
        if folder.exists():
            Home(folder).probe()
        elif not os.access(_existing(folder), os.W_OK | os.X_OK):
            return f"it does not exist, and {_existing(folder)} does not let it be made"
        else:
            with tempfile.TemporaryFile(dir=_existing(folder)):
                pass
    except OSError as error:
        return error.strerror or str(error)
    return None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
