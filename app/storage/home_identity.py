"""The identity of a service: a random name that its database and its files both have.

Files are removed when the database does not know them, and a worker's results are looked for where the API looks. So
a database and a home (or a store, where there is one) that do not belong together are noticed before anything happens.
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

_ANSWER_SECONDS: Final = 1.0
_REMOTE_ANSWER_SECONDS: Final = 5.0
_REMEDY: Final = (
    "set VALLEY_DATABASE and {setting} to those that belong together (is it mounted?), or restore the backup; "
    "`valley serve --adopt-home` joins these two as they are (docs/operations.md)"
)


class WrongHome(StoreUnavailable):
    """Files that are not those of the database; the right ones may appear later, as a volume that is mounted."""


class HomeIdentity:
    """Compares the name in a database with the one beside the files."""

    def __init__(self, database: Database, store: FileStore) -> None:
        self._database = database
        self._store = store
        self._settled: str | None = None
        self._asking = threading.Lock()
        self._asked = -_REMOTE_ANSWER_SECONDS
        self._answer: str | None = None

    def establish(self, *, adopt: bool = False) -> None:
        """Give both a name where neither has one; raises WrongHome where they are not known to belong together.

        For the API alone, inside `database.alone`, when the tables are there. `adopt` takes the files for those of this
        database, whatever they were before; whoever else used them is refused from then on.
        """
        known, confirmed = self._known()
        found = self._store.identity()
        if not adopt:
            self._check_no_unknown_weights(known, confirmed, found)
        elif found is None or found != known:
            log.warning("%s belongs to this database from now on", self._store.place)
        if known is None:
            known = secrets.token_hex(16)
            with self._database.write(durable=True) as connection:
                connection.execute(identity.insert().values(id=known, confirmed=False))
        if found != known:
            self._store.identify(known)
        if not confirmed:
            with self._database.write(durable=True) as connection:
                connection.execute(identity.update().values(confirmed=True))
        self._settled = known

    def establish_late(self) -> None:
        """Settle it now, where the store could not be reached before."""
        if self._settled is None:
            with self._database.exclusive("start"):
                self.establish()

    def look(self) -> None:
        """Raise WrongHome where an API would not start; nothing is changed, and the tables need not be there."""
        self._check_no_unknown_weights(*self._known(), self._store.identity())

    def check(self) -> None:
        """Raise WrongHome unless the files are those of the database; nothing is changed."""
        known = self._settled or self._known()[0]
        if known is None:
            raise WrongHome("the database has no identity yet: it gets one when the API (`valley serve`) starts on it")
        found = self._store.identity()
        if found != known:
            raise WrongHome(self._words("is of another database" if found else "is not the one of this database"))

    def trouble(self) -> str | None:
        """What is wrong at present; cheap enough to be asked often."""
        with self._asking:
            pause = _REMOTE_ANSWER_SECONDS if self._store.remote else _ANSWER_SECONDS
            if time.monotonic() - self._asked > pause:
                before, self._answer = self._answer, None
                try:
                    self.check()
                except WrongHome as error:
                    self._answer = str(error)
                except (OSError, SQLAlchemyError):
                    pass  # told of by those who look after disk, store and database
                if self._answer is not None and self._answer != before:
                    log.error("%s", self._answer)
                self._asked = time.monotonic()
            return self._answer

    def _check_no_unknown_weights(self, known: str | None, confirmed: bool, found: str | None) -> None:
        if found is not None:
            if found != known:
                raise WrongHome(self._words("is of another database"))
        elif known is not None and confirmed:
            raise WrongHome(self._words("is not the one of this database"))
        elif known is None and self._database_is_empty() and self._store.occupied():
            raise WrongHome(self._words("has experiments or uploads, and this database knows none"))

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

    def _words(self, what: str) -> str:
        setting = "VALLEY_STORE" if self._store.remote else "VALLEY_HOME"
        return f"{self._store.place} {what}: {_REMEDY.format(setting=setting)}"
