"""Whether the service can take work: its database and its store answer, and its home is its own and can be written."""

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
_WRONG: Final = "is not that of the database"
_ANSWER_SECONDS: Final = 1.0


class Readiness:
    """Asks when it is asked; the home, which every submission asks about, once a second at most."""

    def __init__(self, service: Service, home: Path) -> None:
        self._service = service
        self._home = home
        self._asking = threading.Lock()
        self._asked = -_ANSWER_SECONDS
        self._trouble: OSError | None = None

    def checks(self) -> dict[str, str]:
        """Each thing that is needed: `ok`, or what is wrong with it."""
        service = self._service
        trouble = self._probe(0.0)
        found = {"database": self._database(), "home": _OK if trouble is None else trouble.strerror or str(trouble)}
        if service.store.remote:
            found["store"] = service.store.problem() or _OK
        files = "store" if service.store.remote else "home"
        if found[files] == _OK and service.identity.problem() is not None:
            found[files] = _WRONG
        return found

    def require_home(self) -> None:
        """Raise a problem where an experiment could not keep what it computes."""
        trouble = self._probe(_ANSWER_SECONDS)
        if trouble is not None:
            found = classify(trouble)
            if found is not None:
                raise storage_problem(found)
            reason = trouble.strerror or str(trouble)
            raise _unfit(f"cannot be written at present ({reason})")
        if self._service.identity.problem() is not None:
            raise _unfit(_WRONG)

    def free_bytes(self) -> int | None:
        """Room on the disk of the home; None where it cannot be asked."""
        try:
            return shutil.disk_usage(self._home).free
        except OSError:
            return None

    def _probe(self, age: float) -> OSError | None:
        with self._asking:
            if time.monotonic() - self._asked >= age:
                try:
                    Home(self._home).probe()
                    self._trouble = None
                except OSError as error:
                    self._trouble = error
                self._asked = time.monotonic()
            return self._trouble

    def _database(self) -> str:
        try:
            self._service.count()
        except SQLAlchemyError as error:
            return str(getattr(error, "orig", error))[:200]
        return _OK


def _unfit(what: str) -> Problem:
    detail = f"the server's home {what}: try again when its operator has seen to it; what it has can be read"
    return Problem(503, "no-home", detail, headers={"Retry-After": "10"})
