"""Back up and restore a service: its database as of one moment, and the files of experiments and uploads.

You can take a backup while everything runs. The database is copied first. Files are replaced as a whole, so those
copied later are the same or newer, as after a crash: a restored service continues from them.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.settings import TOML_FILE, Settings
from valleyscope.app.storage.database import Database
from valleyscope.app.storage.db_errors import short_message
from valleyscope.app.storage.home import IDENTITY, Home
from valleyscope.app.storage.tables import experiments

MANIFEST: Final = "backup.json"
_FORMAT = 1
_SQLITE_FILE = "valley.db"
_POSTGRES_FILE = "valley.dump"
_FOLDERS = ("experiments", "checkpoints")
_FILES = (TOML_FILE, IDENTITY)
_TEMPORARY = ".partial"


class BadBackup(ValueError):
    """The backup cannot be made or used; the message says why, and what to do."""


def back_up(settings: Settings, target: Path) -> dict[str, Any]:
    """Copy everything into a new folder, which appears when it is complete; returns the manifest."""
    if target.exists():
        raise BadBackup(f"{target} exists already: name a new folder for each backup")
    unfinished = target.with_name(f"{target.name}{_TEMPORARY}")
    with _wrap_errors("the backup"), _removed_on_failure(unfinished):
        unfinished.mkdir(parents=True)
        _dump(settings, unfinished)
        for folder in _FOLDERS:
            _copy_tree(settings.home / folder, unfinished / folder)
        for name in _FILES:
            if (settings.home / name).is_file():
                shutil.copy2(settings.home / name, unfinished / name)
        manifest = {
            "format": _FORMAT,
            "program": version("valleyscope"),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            "database": "sqlite" if settings.sqlite else "postgresql",
            "files": sum(1 for path in unfinished.rglob("*") if path.is_file()),
            "bytes": sum(path.stat().st_size for path in unfinished.rglob("*") if path.is_file()),
        }
        (unfinished / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
        unfinished.rename(target)
    return manifest


def restore(settings: Settings, source: Path) -> dict[str, Any]:
    """Restore a backup into an empty home and an empty database; returns its manifest.

    After a failure both are empty, and you can try again.
    """
    manifest = read_manifest(source)
    kind = "sqlite" if settings.sqlite else "postgresql"
    if manifest["database"] != kind:
        raise BadBackup(f"{source} has a {manifest['database']} database, VALLEY_DATABASE is {kind}: use the same kind")
    occupied = [name for name in _FOLDERS if any((settings.home / name).glob("*"))]
    if occupied:
        raise BadBackup(f"home={settings.home} already has {' and '.join(occupied)}: restore into an empty home")
    unfinished = settings.home / f".restore{_TEMPORARY}"
    with _wrap_errors("the restore"):
        _check_database_empty(settings)
        with _removed_on_failure(unfinished):
            unfinished.mkdir(parents=True)
            for folder in _FOLDERS:
                _copy_tree(source / folder, unfinished / folder)
            for name in _FILES:
                if (source / name).is_file():
                    shutil.copy2(source / name, unfinished / name)
            _load(settings, source)
            _move_into_home(unfinished, settings.home)
        unfinished.rmdir()
        Home(settings.home).prepare()
    return manifest


def read_manifest(source: Path) -> dict[str, Any]:
    try:
        found = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadBackup(f"{source} is not a backup: it has no {MANIFEST}") from None
    except ValueError as error:
        raise BadBackup(f"{source / MANIFEST} is damaged: {error}") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise BadBackup(f"{source} is not of format {_FORMAT}: restore it with the version of valleyscope that made it")
    return found


def _dump(settings: Settings, target: Path) -> None:
    with closing(Database(settings.database)) as database:
        if database.path is not None:
            if not database.path.exists():
                raise BadBackup(f"{database.path} does not exist: set VALLEY_HOME or VALLEY_DATABASE")
            with (
                closing(sqlite3.connect(f"file:{database.path}?mode=ro", uri=True)) as source,
                closing(sqlite3.connect(target / _SQLITE_FILE)) as copy,
            ):
                source.backup(copy)
        else:
            _run_tool(database, "pg_dump", "--format=custom", "--no-owner", f"--file={target / _POSTGRES_FILE}")


def _check_database_empty(settings: Settings) -> None:
    """Before any file is copied, the database must be reachable and have no tables of a service."""
    if settings.sqlite and not Path(str(sa.make_url(settings.database).database)).exists():
        return
    with closing(Database(settings.database)) as database:
        if sa.inspect(database.engine).has_table(experiments.name):
            raise BadBackup("the database already has tables of experiments: restore into an empty database")
        if database.path is None:
            _program("pg_restore")


def _load(settings: Settings, source: Path) -> None:
    with closing(Database(settings.database)) as database:
        if database.path is not None:
            database.close()
            for ending in ("", "-wal", "-shm", "-journal"):
                database.path.with_name(f"{database.path.name}{ending}").unlink(missing_ok=True)
            partial = database.path.with_name(f"{database.path.name}{_TEMPORARY}")
            with _removed_on_failure(partial):
                shutil.copy2(source / _SQLITE_FILE, partial)
                partial.replace(database.path)
        else:
            options = ("--no-owner", "--exit-on-error", "--single-transaction")
            _run_tool(database, "pg_restore", *options, str(source / _POSTGRES_FILE))


def _move_into_home(unfinished: Path, home: Path) -> None:
    """Move the complete copy to its final names. An existing settings file stays."""
    for folder in _FOLDERS:
        if (home / folder).is_dir():
            (home / folder).rmdir()
        (unfinished / folder).rename(home / folder)
    (home / IDENTITY).unlink(missing_ok=True)
    for name in _FILES:
        if (unfinished / name).is_file() and not (home / name).exists():
            (unfinished / name).rename(home / name)
    (unfinished / TOML_FILE).unlink(missing_ok=True)


@contextmanager
def _removed_on_failure(path: Path) -> Iterator[None]:
    """Remove a partial file or folder before, in case a killed process left one, and after a failure."""
    _remove(path)
    try:
        yield
    except BaseException:
        _remove(path)
        raise


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


@contextmanager
def _wrap_errors(action: str) -> Iterator[None]:
    """Raise errors of the disk and the database as BadBackup, in one line."""
    try:
        yield
    except BadBackup:
        raise
    except (SQLAlchemyError, sqlite3.Error) as error:
        raise BadBackup(f"{action} failed, database error: {' '.join(short_message(error).split())}") from error
    except OSError as error:
        path = f": {error.filename}" if error.filename else ""
        raise BadBackup(f"{action} failed: {error.strerror or error}{path}") from error


def _program(tool: str) -> str:
    program = shutil.which(tool)
    if program is None:
        raise BadBackup(f"{tool} is not installed: install the Postgres client programs, or see docs/operations.md")
    return program


def _run_tool(database: Database, tool: str, *options: str) -> None:
    """Run a Postgres program; the password goes into its environment, because command lines are public."""
    program = _program(tool)
    url = database.engine.url
    password = url.password or url.query.get("password")  # libpq accepts both
    environment = dict(os.environ) | ({"PGPASSWORD": str(password)} if password else {})
    # A new URL, because `set(password=None)` keeps the password.
    query = {name: value for name, value in url.query.items() if name != "password"}
    plain = sa.URL.create("postgresql", url.username, None, url.host, url.port, url.database, query)
    done = subprocess.run(
        [program, *options, f"--dbname={plain.render_as_string(hide_password=False)}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BadBackup(f"{tool} failed: {done.stderr.strip()[:1000]}")


def _copy_tree(source: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for path in _files(source):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy2(path, copy)
        except FileNotFoundError:
            copy.unlink(missing_ok=True)  # deleted meanwhile


def _files(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in sorted(names) if not name.endswith(_TEMPORARY))
