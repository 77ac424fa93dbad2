"""The local workers of a server: processes of their own that are started again when they die and end with it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from valleyscope.app.secret_files import without_settings
from valleyscope.app.settings import Settings

log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.5
_PATIENCE = 20.0
_LONG_LIFE = 60.0
_LONGEST_PAUSE = 30.0


@dataclass
class _Post:
    """A place in the supervisor, and who is at it."""

    device: str
    process: subprocess.Popen[bytes]
    since: float
    pause: float = 1.0
    due: float | None = None


class WorkerSupervisor:
    """Starts workers, and looks after them in a thread."""

    def __init__(self, settings: Settings, devices: list[str]) -> None:
        self._settings = settings
        self._stopping = threading.Event()
        self._posts = [_Post(device, self._spawn(device), time.monotonic()) for device in devices]
        self._thread = threading.Thread(target=self._look_after, name="supervisor", daemon=True)
        self._thread.start()

    @property
    def processes(self) -> list[int]:
        return [post.process.pid for post in self._posts]

    def call(self) -> None:
        """Tell everyone that there is work, so that nobody has to look often whether there is."""
        for post in self._posts:
            if post.process.stdin is not None:
                with suppress(OSError, ValueError):  # gone, or has not heard many earlier calls yet
                    os.write(post.process.stdin.fileno(), b"!")

    def stop(self) -> None:
        """Let everyone hand back their task and leave; whoever does not is killed."""
        self._stopping.set()
        self._thread.join()
        for post in self._posts:
            with suppress(ProcessLookupError):
                post.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _PATIENCE
        for post in self._posts:
            try:
                post.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("a worker does not leave and is killed", extra={"worker": post.process.pid})
                post.process.kill()
                post.process.wait()
            if post.process.stdin is not None:
                post.process.stdin.close()

    def _spawn(self, device: str) -> subprocess.Popen[bytes]:
        # Through the environment, not as options: a database's address may have a password in it, and everyone on a
        # machine can read the options of a process. The key of the API is none of a worker's business.
        # Nor does a worker of ours need a heartbeat: this process looks after it.
        environment = without_settings(os.environ, ("api_key", "database", "database_password", "heartbeat", "store"))
        environment |= {"VALLEY_HOME": str(self._settings.home), "VALLEY_DATABASE": self._settings.database}
        environment |= {"VALLEY_LOG_LEVEL": self._settings.log_level, "VALLEY_LOG_FORMAT": self._settings.log_format}
        if self._settings.store is not None:
            environment["VALLEY_STORE"] = self._settings.store
        if self._settings.data is not None:
            environment["VALLEY_DATA"] = str(self._settings.data)
        process = subprocess.Popen(
            [sys.executable, "-m", "valleyscope.app.cli", "worker", "--device", device, "--attached"],
            stdin=subprocess.PIPE,  # its end tells the worker that this process is gone, however it went
            env=environment,
            start_new_session=True,  # Ctrl-C is ours to pass on
        )
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _look_after(self) -> None:
        while not self._stopping.wait(_LOOK_SECONDS):
            for post in self._posts:
                self._check(post)

    def _check(self, post: _Post) -> None:
        code = post.process.poll()
        if code is None:
            return
        now = time.monotonic()
        if post.due is None:
            lived = now - post.since
            post.pause = 1.0 if lived > _LONG_LIFE else min(2 * post.pause, _LONGEST_PAUSE)
            post.due = now + (0.0 if lived > _LONG_LIFE else post.pause / 2)
            log.warning("a worker ended with code %s and is replaced", code, extra={"worker": post.process.pid})
        if now >= post.due:
            post.process, post.since, post.due = self._spawn(post.device), now, None


def watch_parent(called: Callable[[], None]) -> None:
    """Hear the calls of the process that started this one; when it is gone, the input ends: end as by SIGTERM then."""

    def wait() -> None:
        with suppress(OSError):
            while os.read(sys.stdin.fileno(), 1024):
                called()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
