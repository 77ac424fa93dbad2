"""The cancel_watch of a worker: when to ask whether its task is still wanted.

A worker whose lease is a session of Postgres hears of it there (`valleyscope.app.storage.cancel_notify`) and asks
then, and now and then
in case something was missed. Where nobody brings tidings, or while the session is gone, it asks whenever it looks.
"""

from __future__ import annotations

import time
from collections.abc import Callable

ASK_SECONDS = 5.0


class CancelWatch:
    """Listens for one experiment at a time."""

    def __init__(self, listening: Callable[[], bool]) -> None:
        """`listening` says whether tidings would be heard now."""
        self._listening = listening
        self._experiment: str | None = None
        self._told = False
        self._asked = 0.0

    def listen_for(self, experiment: str) -> None:
        """Call it before the question with which a task begins, so that nothing is missed after the answer."""
        self._experiment = experiment
        self.note_answer()

    def hear(self, experiment: str) -> None:
        """Somebody tells of an experiment."""
        if experiment == self._experiment:
            self._told = True

    def hear_everything(self) -> None:
        """There may have been tidings that were missed."""
        self._told = True

    def note_answer(self) -> None:
        """Call it before a question, for what is heard meanwhile calls for another one."""
        self._told = False
        self._asked = time.monotonic()

    @property
    def curious(self) -> bool:
        """Whether it is time to ask."""
        return self._told or not self._listening() or time.monotonic() - self._asked >= ASK_SECONDS
