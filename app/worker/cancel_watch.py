"""When a worker checks whether its task is still wanted.

Postgres notifies the worker of a cancelled experiment (`valleyscope.app.storage.cancel_notify`); it also checks now and
then, in case a notification was missed. Without notifications it checks at every poll of the child process.
"""

from __future__ import annotations

import time
from collections.abc import Callable

CHECK_SECONDS = 5.0


class CancelWatch:
    """Watches one experiment at a time."""

    def __init__(self, listening: Callable[[], bool]) -> None:
        """`listening` says whether notifications arrive now."""
        self._listening = listening
        self._experiment: str | None = None
        self._notified = False
        self._checked = 0.0

    def watch(self, experiment: str) -> None:
        """Call it before the first check of a task, so that no later notification is missed."""
        self._experiment = experiment
        self.start_check()

    def on_notify(self, experiment: str) -> None:
        if experiment == self._experiment:
            self._notified = True

    def on_regained(self) -> None:
        """Notifications may have been missed."""
        self._notified = True

    def start_check(self) -> None:
        """Call it before a check: a notification that arrives during it calls for another one."""
        self._notified = False
        self._checked = time.monotonic()

    @property
    def check_due(self) -> bool:
        return self._notified or not self._listening() or time.monotonic() - self._checked >= CHECK_SECONDS
