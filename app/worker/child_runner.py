"""Runs tasks in a warm child process, one at a time."""

from __future__ import annotations

import logging
import signal
import time
from collections.abc import Callable

from valleyscope.app.devices import CPU
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.tasks.failures import WorkerFault
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.child_process import Advance, Child, Failed, Finished, Message, SelfTestResult

log = logging.getLogger(__name__)

_RECEIVE_SECONDS = 0.1
_POLL_SECONDS = 0.4
_LONGEST_WAIT = 1.0
STALL_SECONDS = 120.0
"""A child that sends no heartbeat for this long is stuck, and is replaced."""


class TaskFailed(Exception):
    """The task itself failed; the message is for people."""


class ChildCrashed(Exception):
    """The child process ended while it ran a task."""


class Interrupted(Exception):
    """The task was stopped because `should_stop` asked for it; what it saved stays valid."""


class ChildRunner:
    """Keeps a child process warm, and replaces it when it crashes or is stuck."""

    def __init__(self, device: str, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._device = device
        self._stall_seconds = stall_seconds
        self._silence = 0.0
        self._child: Child | None = None
        self.used = False

    @property
    def warm(self) -> bool:
        return self._child is not None

    @property
    def processes(self) -> list[int]:
        """The process id of the child, if there is one."""
        pid = None if self._child is None else self._child.process.pid
        return [] if pid is None else [pid]

    def warm_up(self) -> None:
        """Start the child, which then loads torch."""
        if self._child is None:
            self._child = Child(self._device)
            self.used = False

    def clear(self) -> None:
        """Kill an idle child to free its memory; it may still be loading torch."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def self_test(self, check: Callable[[], None]) -> str | None:
        """Let a child compute something tiny on a GPU; returns what is wrong, and keeps no broken child.

        A CPU needs no test. `check` is called a few times a second, and may raise.
        """
        if self._device == CPU:
            return None
        self.warm_up()
        assert self._child is not None
        self._silence = 0.0
        try:
            self._child.self_test()
            while not isinstance(message := self._receive(_RECEIVE_SECONDS), SelfTestResult):
                if self._silence > self._stall_seconds:
                    raise self._kill()
                check()
        except ChildCrashed as crash:
            return f"the process that should compute on {self._device} crashed ({crash})"
        except OSError:
            return f"the process that should compute on {self._device} crashed ({self._kill()})"
        if message.trouble is not None:
            self.clear()
        return message.trouble

    def run(
        self,
        assignment: Assignment,
        on_progress: Callable[[Advance], None],
        should_stop: Callable[[], float | None],
    ) -> Result:
        """Run a task to its end.

        `on_progress` is called with each progress message of the child. `should_stop` is called a few times a second;
        when it returns a number, the task may save its state for that many seconds, and is then killed.
        """
        self.warm_up()
        assert self._child is not None
        self.used = True
        try:
            self._child.start(assignment)
        except OSError:
            raise self._kill() from None
        polled = time.monotonic()
        self._silence = 0.0
        while True:
            message = self._receive(_RECEIVE_SECONDS)
            if isinstance(message, Advance):
                on_progress(message)
            elif isinstance(message, Finished | Failed):
                return self._result(message)
            elif self._silence > self._stall_seconds:
                log.warning("the child process sent nothing for %.0f s and is replaced", self._silence)
                raise self._kill()
            if time.monotonic() - polled >= _POLL_SECONDS:
                seconds = should_stop()
                polled = time.monotonic()
                if seconds is not None:
                    return self._cancel(seconds)

    def _receive(self, timeout: float) -> Message | None:
        assert self._child is not None
        began = time.monotonic()
        try:
            if not self._child.connection.poll(timeout):
                # While this process itself was stopped, it could not receive anything.
                self._silence += min(time.monotonic() - began, _LONGEST_WAIT)
                return None
            message: Message = self._child.connection.recv()
            self._silence = 0.0
            return message
        except (EOFError, OSError):
            raise self._kill() from None

    def _cancel(self, seconds: float) -> Result:
        """Ask the task to stop, and kill the child if it does not; the task may end just then."""
        assert self._child is not None
        self._child.cancel()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            message = self._receive(left)
            if isinstance(message, Finished):
                return message.result
            if isinstance(message, Failed):
                if message.fault is not None:
                    self.clear()
                raise Interrupted
        self._child.kill()
        self._child = None
        raise Interrupted

    def _kill(self) -> ChildCrashed:
        assert self._child is not None
        self._child.kill()
        code = self._child.process.exitcode
        self._child = None
        return ChildCrashed(f"exit code {code}{', perhaps out of memory' if code == -signal.SIGKILL else ''}")

    def _result(self, message: Finished | Failed) -> Result:
        if isinstance(message, Finished):
            return message.result
        log.debug("%s", message.traceback)
        if message.fault is None:
            raise TaskFailed(message.reason)
        self.clear()  # after a failure of the device all later computations in this process would fail, too
        raise WorkerFault(message.reason, full=message.full)
