"""A daemon thread that repeats an action until it is stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy.exc import SQLAlchemyError

log = logging.getLogger(__name__)

_STOP_SECONDS = 5.0
_ERROR_SECONDS = 1.0


class PeriodicThread:
    """Calls `action` every `seconds` after `start`. Errors are logged, and the action is called again."""

    def __init__(self, name: str, seconds: float, action: Callable[[], object]) -> None:
        self.stopping = threading.Event()
        self._seconds = seconds
        self._action = action
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait a few seconds for a call that is under way: a database may not answer."""
        self.stopping.set()
        if self._thread.is_alive():
            self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        while not self.stopping.wait(self._seconds):
            try:
                self._action()
            except Exception as error:
                expected = isinstance(error, SQLAlchemyError | OSError)
                reason = getattr(error, "orig", None) or error  # without the statement that failed
                log.warning("%s failed and is repeated: %s", self._thread.name, reason, exc_info=not expected)
                self.stopping.wait(_ERROR_SECONDS)
