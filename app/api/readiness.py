"""Readiness: database and store are reachable, and the home belongs to the database and can be written."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.api.problems import Problem, storage_problem
from valleyscope.app.api.service import Service
from valleyscope.app.storage.db_errors import classify
from valleyscope.app.storage.home import Home

_OK: Final = "ok"
_WRONG: Final = "is not linked to this database"
_CACHE_SECONDS: Final = 1.0


class Readiness:
    """Checks on demand. Submissions check the home too, at most once a second."""

    def __init__(self, service: Service, home: Path) -> None:
        self._service = service
        self._home = home
        self._lock = threading.Lock()
        self._checked = -_CACHE_SECONDS
        self._home_error: OSError | None = None

    def checks(self) -> dict[str, str]:
        """`ok` or an error message for each dependency."""
        service = self._service
        error = self._probe(0.0)
        found = {"database": self._database(), "home": _OK if error is None else error.strerror or str(error)}
        if service.store.remote:
            found["store"] = service.store.problem() or _OK
        files = "store" if service.store.remote else "home"
        if found[files] == _OK and service.identity.problem() is not None:
            found[files] = _WRONG
        return found

    def require_home(self) -> None:
        """Raise a problem if experiments cannot write their results."""
        error = self._probe(_CACHE_SECONDS)
        if error is not None:
            state = classify(error)
            raise storage_problem(state) if state else _no_home(f"cannot be written ({error.strerror or error})")
        if self._service.identity.problem() is not None:
            raise _no_home(_WRONG)

    def free_bytes(self) -> int | None:
        """Free space on the disk of the home; None if unknown."""
        try:
            return shutil.disk_usage(self._home).free
        except OSError:
            return None

    def _probe(self, max_age: float) -> OSError | None:
        with self._lock:
            if time.monotonic() - self._checked >= max_age:
                try:
                    Home(self._home).probe()
                    self._home_error = None
                except OSError as error:
                    self._home_error = error
                self._checked = time.monotonic()
            return self._home_error

    def _database(self) -> str:
        try:
            self._service.experiment_table.count()
        except SQLAlchemyError as error:
            return str(getattr(error, "orig", error))[:200]
        return _OK


def _no_home(what: str) -> Problem:
    detail = f"the home of the server {what}: ask its operator and try again; you can still read results"
    return Problem(503, "no-home", detail, headers={"Retry-After": "10"})
