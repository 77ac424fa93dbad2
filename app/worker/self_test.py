"""Whether a worker is fit for work: it can write its home, and compute on its device.

One that is not would take every task at once and fail it, faster than any other. So each worker proves itself before
it takes work, and again after a task that failed by a disk or a device. The proof decides whose fault that was.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from valleyscope.app.storage.home import Home
from valleyscope.app.tasks.failures import WorkerFault

log = logging.getLogger(__name__)

SPARE = 128 * 2**20
"""So many bytes must be free again after a task found the disk full: it wants more than a proof writes."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


class WorkerSelfTest:
    """The state of one worker. Its proofs must not overlap with tasks: whoever asks for one holds the child_runner."""

    def __init__(self, storage: Home, device: Callable[[], str | None]) -> None:
        """`device` computes something on the device of the worker, and says what is wrong with it."""
        self.fault: str | None = "it has not proven yet that it can work"
        """What is wrong with the worker; None while it is well."""
        self._storage = storage
        self._device = device
        self._spare = 0
        self._pause = _FIRST_PAUSE
        self._due = 0.0
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether the worker may take work: it is well, and does not rest."""
        return self.fault is None and time.monotonic() >= self._due

    @property
    def due(self) -> bool:
        """Whether it is time for another proof."""
        return self.fault is not None and time.monotonic() >= self._due

    def run(self) -> bool:
        """Find out whether the worker can work. Where it cannot, the next proof is due after a pause."""
        found = self._home() or self._device()
        with self._lock:
            if found is None:
                if self.fault is not None:
                    log.info("the worker is fit for work")
                self._spare = 0
            else:
                log.warning("this worker takes no work: %s; trying again in %.0f s", found, self._pause)
                self._rest()
            self.fault = found
        return found is None

    def run_after_failure(self, trouble: WorkerFault) -> bool:
        """After a task that could not be done here: whether that was the worker's fault, as a proof shows.

        Also a worker that is well takes no work for a while then, so that others can try themselves at the task.
        """
        if trouble.full:
            self._spare = SPARE
        well = self.run()
        if well:
            with self._lock:
                self._rest()
        return not well

    def reset_backoff(self) -> None:
        """A task was done."""
        self._pause = _FIRST_PAUSE

    def _rest(self) -> None:
        self._due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _home(self) -> str | None:
        try:
            self._storage.probe_work(spare=self._spare)
        except OSError as error:
            return f"home={str(self._storage.path)!r} cannot be written ({error.strerror or error})"
        return None
