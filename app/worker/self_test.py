"""Whether a worker can run tasks: it can write its home and compute on its device.

A broken worker would fail tasks faster than the others complete them. So each worker tests itself before it takes
tasks, and again after a disk or a device failed a task: the test shows whether the worker or the task is the cause.
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
"""Bytes that must be free after a task found the disk full: a task needs more than the test writes."""
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 30.0


class WorkerSelfTest:
    """The self-test of one worker. Hold the lock of the child process while it runs."""

    def __init__(self, home: Home, test_device: Callable[[], str | None]) -> None:
        """`test_device` computes something on the device, and returns what is wrong with it."""
        self.fault: str | None = "its self-test has not run yet"
        """What is wrong with the worker; None while it is healthy."""
        self._home = home
        self._test_device = test_device
        self._spare = 0
        self._pause = _FIRST_PAUSE
        self._due = 0.0
        self._lock = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether the worker may take tasks: its last test passed, and no backoff is under way."""
        return self.fault is None and time.monotonic() >= self._due

    @property
    def due(self) -> bool:
        """Whether it is time for another test."""
        return self.fault is not None and time.monotonic() >= self._due

    def run(self) -> bool:
        """Whether the worker can run tasks. If not, the next test is due after a pause."""
        found = self._test_home() or self._test_device()
        with self._lock:
            if found is None:
                if self.fault is not None:
                    log.info("the self-test of the worker passed")
                self._spare = 0
            else:
                log.warning("this worker takes no work: %s; trying again in %.0f s", found, self._pause)
                self._back_off()
            self.fault = found
        return found is None

    def run_after_failure(self, fault: WorkerFault) -> bool:
        """Whether the worker is the cause of a failed task.

        A healthy worker takes no tasks for a while as well, so that another one can try the task.
        """
        if fault.full:
            self._spare = SPARE
        healthy = self.run()
        if healthy:
            with self._lock:
                self._back_off()
        return not healthy

    def reset_backoff(self) -> None:
        """Call it after a completed task."""
        self._pause = _FIRST_PAUSE

    def _back_off(self) -> None:
        self._due = time.monotonic() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _test_home(self) -> str | None:
        try:
            self._home.probe_work(spare=self._spare)
        except OSError as error:
            return f"home={str(self._home.path)!r} cannot be written ({error.strerror or error})"
        return None
