"""The identity of a service: a random name that its database and its files share.

Files that the database does not know are removed, and workers write results where the API reads them. So a database and
a home (or a store) that do not belong together must be detected before anything else happens.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from typing import Final

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.storage.database import Database
from valleyscope.app.storage.file_store import FileStore
from valleyscope.app.storage.object_store import StoreUnavailable
from valleyscope.app.storage.tables import checkpoints, experiments, identity

log = logging.getLogger(__name__)

_CHECK_SECONDS: Final = 1.0
_REMOTE_CHECK_SECONDS: Final = 5.0
_REMEDY: Final = (
    "set VALLEY_DATABASE and {setting} to a pair that belongs together (is it mounted?), or restore a backup; "
    "`valley serve --adopt-home` links these two as they are (docs/operations.md)"
)


class WrongHome(StoreUnavailable):
    """The files belong to another database; the right ones may appear later, when a volume is mounted."""


class HomeIdentity:
    """Compares the identity in the database with the one beside the files."""

    def __init__(self, database: Database, store: FileStore) -> None:
        self._database = database
        self._store = store
        self._established: str | None = None
        self._check_lock = threading.Lock()
        self._last_check = -_REMOTE_CHECK_SECONDS
        self._problem: str | None = None

    def establish(self, *, adopt: bool = False) -> None:
        """Give both an identity if neither has one; raises WrongHome unless they belong together.

        Only the API calls this, inside `database.exclusive`, after the migrations. `adopt` links the files to this
        database, whatever they belonged to before; the other database is then refused.
        """
        known, confirmed = self._known()
        found = self._store.identity()
        if not adopt:
            self._check_match(known, confirmed, found)
        elif found is None or found != known:
            log.warning("%s is now linked to this database", self._store.location)
        if known is None:
            known = secrets.token_hex(16)
            with self._database.write(durable=True) as connection:
                connection.execute(identity.insert().values(id=known, confirmed=False))
        if found != known:
            self._store.write_identity(known)
        if not confirmed:
            with self._database.write(durable=True) as connection:
                connection.execute(identity.update().values(confirmed=True))
        self._established = known

    def establish_if_missing(self) -> None:
        """Establish the identity if the store could not be reached at the start."""
        if self._established is None:
            with self._database.exclusive("start"):
                self.establish()

    def check_startable(self) -> None:
        """Raise WrongHome if the API would not start. Changes nothing, and works before the migrations."""
        self._check_match(*self._known(), self._store.identity())

    def check(self) -> None:
        """Raise WrongHome unless the files belong to the database. Changes nothing."""
        known = self._established or self._known()[0]
        if known is None:
            raise WrongHome("the database has no identity yet: start the API (`valley serve`) on it first")
        found = self._store.identity()
        if found != known:
            reason = "belongs to another database" if found else "does not belong to this database"
            raise WrongHome(self._message(reason))

    def problem(self) -> str | None:
        """What is wrong now; cheap enough to be called often."""
        with self._check_lock:
            interval = _REMOTE_CHECK_SECONDS if self._store.remote else _CHECK_SECONDS
            if time.monotonic() - self._last_check > interval:
                before, self._problem = self._problem, None
                try:
                    self.check()
                except WrongHome as error:
                    self._problem = str(error)
                except (OSError, SQLAlchemyError):
                    pass  # reported by the checks of disk, store and database
                if self._problem is not None and self._problem != before:
                    log.error("%s", self._problem)
                self._last_check = time.monotonic()
            return self._problem

    def _check_match(self, known: str | None, confirmed: bool, found: str | None) -> None:
        if found is not None:
            if found != known:
                raise WrongHome(self._message("belongs to another database"))
        elif known is not None and confirmed:
            raise WrongHome(self._message("does not belong to this database"))
        elif known is None and self._database_is_empty() and self._store.has_files():
            raise WrongHome(self._message("has experiments or uploads, and this database is empty"))

    def _known(self) -> tuple[str | None, bool]:
        with self._database.read() as connection:
            if not sa.inspect(connection).has_table(identity.name):
                return None, False
            row = connection.execute(sa.select(identity)).one_or_none()
        return (None, False) if row is None else (row.id, row.confirmed)

    def _database_is_empty(self) -> bool:
        with self._database.read() as connection:
            there = [table for table in (experiments, checkpoints) if sa.inspect(connection).has_table(table.name)]
            return not any(connection.execute(sa.select(table.c.id).limit(1)).first() for table in there)

    def _message(self, problem: str) -> str:
        setting = "VALLEY_STORE" if self._store.remote else "VALLEY_HOME"
        return f"{self._store.location} {problem}: {_REMEDY.format(setting=setting)}"
