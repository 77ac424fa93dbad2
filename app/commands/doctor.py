"""`valley doctor`: checks versions, devices, settings, database, home and data. It creates nothing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import sqlalchemy as sa
from rich.console import Console
from rich.markup import escape
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
from valleyscope.training.dataset_sources import SOURCES, data_root

Row = tuple[str, str]
_MIN_POSTGRES = 14
_CONNECTIONS_PER_WORKER = 4
_OTHER_CONNECTIONS = 50  # see docs/scaling.md


def examine(settings: Settings, console: Console) -> int:
    """Print the state of this installation; returns 1 if something is missing."""
    problems: list[str] = []
    console.print(_table("installation", _installation_rows(settings, problems)))
    console.print(_table("settings (VALLEY_*, or valley.toml under the home)", settings.shown()))
    console.print(_table(f"data sets under {data_root(settings.data)}", _dataset_rows(settings)))
    storage = (*_database_rows(settings, problems), *_folder_rows(settings, problems))
    console.print(_table("database, home and data", storage))
    for problem in problems:
        console.print(f"[red]problem:[/red] {escape(problem)}", highlight=False, soft_wrap=True)
    if not problems:
        console.print("Nothing is missing.")
    return 1 if problems else 0


def _table(title: str, rows: Iterable[Row]) -> Table:
    table = Table(title=title, title_justify="left", show_header=False)
    for row in rows:
        table.add_row(*row)
    return table


def _installation_rows(settings: Settings, problems: list[str]) -> Iterator[Row]:
    yield "python", f"{platform.python_version()} on {platform.platform()}"
    for library in _libraries():
        try:
            yield library, version(library)
        except PackageNotFoundError:
            yield library, "[red]missing[/red]"
            problems.append(f"library {library} is missing: pip install valleyscope")
    for number, device in enumerate(_devices(problems)):
        yield "devices" if number == 0 else "", device
    yield "workers", f"{len(devices_for(settings.workers))} (one process each)"


def _libraries() -> list[str]:
    plain = [line for line in requires("valleyscope") or [] if "extra ==" not in line]
    return ["valleyscope", *(re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0] for line in plain)]


def _devices(problems: list[str]) -> list[str]:
    try:
        import torch
    except ImportError as error:
        problems.append(f"torch cannot be imported: {error}")
        return ["unknown: torch cannot be imported"]
    devices = [f"cpu, {os.cpu_count()} cores"]
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        devices.append(f"cuda:{index} {properties.name}, {properties.total_memory / 2**30:.0f} GiB")
    return devices


def _dataset_rows(settings: Settings) -> Iterator[Row]:
    root = data_root(settings.data)
    for name, source in SOURCES.items():
        absent = source.missing_files(root) if source.files else ()
        yield name, f"missing {', '.join(absent)} (downloaded at first use)" if absent else "present"
    yield "npz:PATH", "your own arrays x_train, y_train, x_test, y_test"


def _usable_store(settings: Settings, problems: list[str]) -> FileStore | None:
    """The store, after a test file was written, read, listed and removed; None if that fails."""
    try:
        store = open_store(settings.store, Home(settings.home))
        store.probe()
    except (BadStore, StoreUnavailable) as error:
        problems.append(str(error))
        return None
    return store


def _database_rows(settings: Settings, problems: list[str]) -> Iterator[Row]:
    store = _usable_store(settings, problems)
    name = sa.make_url(settings.database).database
    if settings.sqlite and name and not Path(name).exists():
        yield "database", f"{name} does not exist yet: `valley serve` creates it"
        if store is not None and (store.identity() is not None or store.has_files()):
            problems.append(f"{store.location} has files of another database: check VALLEY_DATABASE")
        return
    try:
        with closing(Database(settings.database, connections=1)) as database:
            yield from _table_rows(database, settings, problems)
            if store is not None:
                HomeIdentity(database, store).check_startable()
                yield "identity", f"{store.location} and the database belong together"
    except WrongHome as error:
        problems.append(str(error))
    except (SQLAlchemyError, OSError) as error:
        where = without_secrets(settings.database)
        yield "database", "cannot be used"
        problems.append(f"the database {where} cannot be used: {' '.join(short_message(error).split())}")


def _table_rows(database: Database, settings: Settings, problems: list[str]) -> Iterator[Row]:
    with database.read() as connection:
        if database.sqlite:
            yield "database", f"SQLite {connection.execute(sa.text('SELECT sqlite_version()')).scalar()}"
            connection.rollback()
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # fails if the file is read-only
            connection.rollback()
        else:
            yield from _postgres_rows(connection, settings, problems)
        known, found = max(steps()), found_version(connection)
        if found is None:
            yield "tables", "none yet: `valley serve` creates them"
            return
        yield "tables", f"version {found.version}, this program supports {known}"
        if found.suits > known:
            problems.append(f"table version {found.version} is newer than this program ({known}): upgrade valleyscope")


def _postgres_rows(connection: sa.Connection, settings: Settings, problems: list[str]) -> Iterator[Row]:
    version = str(connection.execute(sa.text("SHOW server_version")).scalar())
    yield "database", f"Postgres {version}"
    number = int(connection.execute(sa.text("SHOW server_version_num")).scalar_one())
    if number < _MIN_POSTGRES * 10_000:
        problems.append(f"Postgres {version} is too old: upgrade it to {_MIN_POSTGRES} or newer")
    if connection.execute(sa.text("SHOW transaction_read_only")).scalar() == "on":
        problems.append("the database is read-only: use one that can be written, not a standby")
    running = len(process_ids(connection, "worker")) if sa.inspect(connection).has_table(processes.name) else 0
    workers = max(running, len(devices_for(settings.workers)))
    needed = _OTHER_CONNECTIONS + _CONNECTIONS_PER_WORKER * workers
    allowed = int(connection.execute(sa.text("SHOW max_connections")).scalar_one())
    yield "connections", f"{allowed} allowed (max_connections), {needed} needed for {workers} workers"
    if allowed < needed:
        problems.append(f"Postgres has too few connections: raise max_connections from {allowed} to {needed}")


def _folder_rows(settings: Settings, problems: list[str]) -> Iterator[Row]:
    home, data = settings.home, data_root(settings.data)
    for name, folder in (("home", home), ("data", data)):
        reason = _write_error(folder)
        yield name, f"{folder}{'' if folder.exists() else ', created when needed'}"
        try:
            yield f"free disk of {name}", f"{shutil.disk_usage(_existing(folder)).free / 2**30:.1f} GiB"
        except OSError as error:
            reason = reason or error.strerror or str(error)
        # The data folder may be read-only if it has all data sets.
        if reason is not None and (name == "home" or any(source.missing_files(data) for source in SOURCES.values())):
            problems.append(
                f"{name}={str(folder)!r} cannot be written ({reason}): free space or change its permissions"
            )


def _write_error(folder: Path) -> str | None:
    """Why a folder cannot be written or created; None if it can."""
    try:
        if folder.exists():
            Home(folder).probe()
        elif not os.access(_existing(folder), os.W_OK | os.X_OK):
            return f"it does not exist, and {_existing(folder)} is read-only"
        else:
            with tempfile.TemporaryFile(dir=_existing(folder)):
                pass
    except OSError as error:
        return error.strerror or str(error)
    return None


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.parents) if path.exists())
