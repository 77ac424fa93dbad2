"""The local workers of a server: processes that are restarted when they die, and end with the server."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass

from valleyscope.app.periodic_thread import PeriodicThread
from valleyscope.app.secret_files import without_settings
from valleyscope.app.settings import Settings

log = logging.getLogger(__name__)

_CHECK_SECONDS = 0.5
_STOP_SECONDS = 20.0
_LONG_LIFE = 60.0
_LONGEST_PAUSE = 30.0


@dataclass
class _Slot:
    """A device, and the worker process that runs on it."""

    device: str
    process: subprocess.Popen[bytes]
    since: float
    pause: float = 1.0
    due: float | None = None


class WorkerSupervisor:
    """Starts one worker for each device, and restarts those that die."""

    def __init__(self, settings: Settings, devices: list[str]) -> None:
        self._settings = settings
        self._slots = [_Slot(device, self._spawn(device), time.monotonic()) for device in devices]
        self._thread = PeriodicThread("worker supervisor", _CHECK_SECONDS, self._check)
        self._thread.start()

    @property
    def processes(self) -> list[int]:
        return [slot.process.pid for slot in self._slots]

    def stop(self) -> None:
        """Let all workers requeue their tasks and end; those that do not end are killed."""
        self._thread.stop()
        for slot in self._slots:
            with suppress(ProcessLookupError):
                slot.process.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + _STOP_SECONDS
        for slot in self._slots:
            try:
                slot.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("a worker does not end and is killed", extra={"worker": slot.process.pid})
                slot.process.kill()
                slot.process.wait()
            if slot.process.stdin is not None:
                slot.process.stdin.close()

    def _spawn(self, device: str) -> subprocess.Popen[bytes]:
        # By the environment, not by options, which every user of a machine can read: the URL of a database may have a
        # password in it. A worker needs neither the key of the API nor a health file.
        environment = without_settings(os.environ, ("api_key", "database", "database_password", "heartbeat", "store"))
        environment |= {"VALLEY_HOME": str(self._settings.home), "VALLEY_DATABASE": self._settings.database}
        environment |= {"VALLEY_LOG_LEVEL": self._settings.log_level, "VALLEY_LOG_FORMAT": self._settings.log_format}
        if self._settings.store is not None:
            environment["VALLEY_STORE"] = self._settings.store
        if self._settings.data is not None:
            environment["VALLEY_DATA"] = str(self._settings.data)
        return subprocess.Popen(
            [sys.executable, "-m", "valleyscope.app.cli", "worker", "--device", device, "--attached"],
            stdin=subprocess.PIPE,  # it ends with this process, and with it the worker
            env=environment,
            start_new_session=True,  # this process passes Ctrl-C on
        )

    def _check(self) -> None:
        for slot in self._slots:
            code = slot.process.poll()
            if code is not None:
                self._restart(slot, code)

    def _restart(self, slot: _Slot, code: int) -> None:
        now = time.monotonic()
        if slot.due is None:
            lived = now - slot.since
            slot.pause = 1.0 if lived > _LONG_LIFE else min(2 * slot.pause, _LONGEST_PAUSE)
            slot.due = now + (0.0 if lived > _LONG_LIFE else slot.pause / 2)
            log.warning("a worker ended with code %s and is restarted", code, extra={"worker": slot.process.pid})
        if now >= slot.due:
            slot.process, slot.since, slot.due = self._spawn(slot.device), now, None


def watch_parent() -> None:
    """End as by SIGTERM when the process that started this one is gone: then the input ends."""

    def wait() -> None:
        with suppress(OSError):
            while os.read(sys.stdin.fileno(), 1024):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()
