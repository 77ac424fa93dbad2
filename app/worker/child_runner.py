"""The child_runner of a worker: a warm child process, and one task at a time on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from valleyscope.app.devices import CPU
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.tasks.assignment import Assignment
from valleyscope.app.tasks.failures import WorkerFault
from valleyscope.app.worker.child_process import Advance, Child, Failed, Finished, Message, SelfTestResult

log = logging.getLogger(__name__)

_HEAR_SECONDS = 0.1
_LOOK_SECONDS = 0.4
_LONGEST_WAIT = 1.0
STALL_SECONDS = 120.0
"""A child that gives no sign of life for so long is stuck, and is replaced."""


class TaskFailed(Exception):
    """The task failed by itself; the message is for people."""


class ChildDied(Exception):
    """The child process died under the task."""


class Interrupted(Exception):
    """The task was stopped because `look` asked for it; what it saved stays valid."""


class ChildRunner:
    """Keeps a child warm, gives it tasks, and replaces it when it dies or does not listen."""

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
        """The child, if there is one."""
        pid = None if self._child is None else self._child.process.pid
        return [] if pid is None else [pid]

    def warm_up(self) -> None:
        """Start the child, which then loads torch by itself."""
        if self._child is None:
            self._child = Child(self._device)
            self.used = False

    def clear(self) -> None:
        """End an idle child, and give its memory back. It has nothing to lose, and may still be loading torch."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def self_test(self, check: Callable[[], None]) -> str | None:
        """Let a child compute something tiny on the device; returns what is wrong, and leaves no child that is.

        A processor needs no proof. `check` is called a few times a second, and may raise.
        """
        if self._device == CPU:
            return None
        self.warm_up()
        assert self._child is not None
        self._silence = 0.0
        try:
            self._child.self_test()
            while not isinstance(message := self._receive(_HEAR_SECONDS), SelfTestResult):
                if self._silence > self._stall_seconds:
                    raise self._kill()
                check()
        except ChildDied as death:
            return f"the process that should compute on {self._device} died ({death})"
        except OSError:
            return f"the process that should compute on {self._device} died ({self._kill()})"
        if message.trouble is not None:
            self.clear()
        return message.trouble

    def run(self, assignment: Assignment, hear: Callable[[Advance], None], look: Callable[[], float | None]) -> Result:
        """Run a task to its end.

        `look` is called a few times a second; when it returns a number, the task gets so many seconds to save its
        state, and is then stopped in any case.
        """
        self.warm_up()
        assert self._child is not None
        self.used = True
        try:
            self._child.start(assignment)
        except OSError:
            raise self._kill() from None
        looked = time.monotonic()
        self._silence = 0.0
        while True:
            message = self._receive(_HEAR_SECONDS)
            if isinstance(message, Advance):
                hear(message)
            elif isinstance(message, Finished | Failed):
                return self._result(message)
            elif self._silence > self._stall_seconds:
                log.warning("the child process gives no sign of life for %.0f s and is replaced", self._silence)
                raise self._kill()
            if time.monotonic() - looked >= _LOOK_SECONDS:
                patience = look()
                looked = time.monotonic()
                if patience is not None:
                    return self._interrupt(patience)

    def _receive(self, timeout: float) -> Message | None:
        assert self._child is not None
        began = time.monotonic()
        try:
            if not self._child.connection.poll(timeout):
                # While this process itself was stopped, nobody could hear the child.
                self._silence += min(time.monotonic() - began, _LONGEST_WAIT)
                return None
            message: Message = self._child.connection.recv()
            self._silence = 0.0
            return message
        except (EOFError, OSError):
            raise self._kill() from None

    def _interrupt(self, patience: float) -> Result:
        """Ask the task to stop; it may happen to end just then, or not listen."""
        assert self._child is not None
        self._child.cancel()
        deadline = time.monotonic() + patience
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

    def _kill(self) -> ChildDied:
        assert self._child is not None
        self._child.kill()
        code = self._child.process.exitcode
        self._child = None
        return ChildDied(f"exit code {code}")

    def _result(self, message: Finished | Failed) -> Result:
        if isinstance(message, Finished):
            return message.result
        log.debug("%s", message.traceback)
        if message.fault is None:
            raise TaskFailed(message.reason)
        self.clear()  # whatever it would do next on a device that failed would fail, too
        raise WorkerFault(message.reason, full=message.full)
