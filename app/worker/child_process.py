"""A warm child process that runs tasks: torch, data set and network stay loaded in it between tasks.

Only children import torch, so a parent stays responsive, can cancel at once by killing the child, and survives a crash
of a task.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from valleyscope.app import log_config
from valleyscope.app.devices import environment_of
from valleyscope.app.experiments.task_results import Result
from valleyscope.app.tasks.failures import FULL, Fault, disk_fault
from valleyscope.app.tasks.task_assignment import Assignment

_SPAWN = multiprocessing.get_context("spawn")


@dataclass(frozen=True)
class Advance:
    """Progress of a task: the share that is done, and details for people (epoch metrics, a warning)."""

    share: float
    details: dict[str, Any]


@dataclass(frozen=True)
class Finished:
    result: Result


@dataclass(frozen=True)
class Failed:
    """A task that raised: the message is for people, the traceback for the log.

    With a `fault` the disk or the device is the cause, as far as the error tells.
    """

    message: str
    kind: str
    traceback: str
    fault: Fault | None = None
    full: bool = False

    @property
    def reason(self) -> str:
        """The message; with the type of the error if that is an unexpected one, whose message says little."""
        return f"{self.kind}: {self.message}" if self.kind in _UNEXPECTED else self.message


_UNEXPECTED = frozenset({"RuntimeError", "TypeError", "KeyError", "AttributeError", "AssertionError", "IndexError"})


@dataclass(frozen=True)
class Heartbeat:
    """Sent between other messages: a child that is stopped or stuck sends none."""


@dataclass(frozen=True)
class SelfTest:
    """Asks the child to compute something tiny on its device."""


@dataclass(frozen=True)
class SelfTestResult:
    """What is wrong with the device, if anything."""

    trouble: str | None


Message = Advance | Heartbeat | Finished | Failed | SelfTestResult
HEARTBEAT_SECONDS = 2.0


class Child:
    """The parent's end of one child process."""

    def __init__(self, device: str = "cpu", *, threads: int = 1) -> None:
        self.connection, other = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(other, threads, device, log_config.style), daemon=True)
        self.process.start()
        other.close()

    def start(self, assignment: Assignment) -> None:
        self.connection.send(assignment)

    def self_test(self) -> None:
        """Ask the child to test its device; it answers with SelfTestResult."""
        self.connection.send(SelfTest())

    def cancel(self) -> None:
        """Ask the running task to save its state and stop."""
        with suppress(OSError):
            self.connection.send("cancel")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()

    def close(self, patience: float = 5.0) -> None:
        """End an idle child: it exits when its pipe closes."""
        self.connection.close()
        self.process.join(patience)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _serve(connection: Connection, threads: int, device: str, style: log_config.Style | None) -> None:
    """The main function of the child: runs assignments until the parent is gone."""
    if style is not None:
        log_config.start_logging(style)
    os.environ.update(environment_of(device))  # before torch is imported, which reads it once
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    sending = threading.Lock()
    busy = threading.Event()
    busy.set()  # loading libraries may take long

    def send(message: Message) -> None:
        with sending:
            connection.send(message)

    def send_heartbeats() -> None:
        with suppress(OSError):
            while busy.wait():
                send(Heartbeat())
                time.sleep(HEARTBEAT_SECONDS)

    threading.Thread(target=send_heartbeats, name="heartbeat", daemon=True).start()
    import torch

    from valleyscope.app.tasks.tasks import run_task
    from valleyscope.app.tasks.torch_device import self_test_device, set_device

    torch.set_num_threads(threads)
    set_device(device)
    with suppress(ImportError):  # torch.fx runs under a tqdm bar, whose lock between processes outlives a killed one
        from tqdm import tqdm

        tqdm.set_lock(threading.RLock())
    inbox = _Inbox(connection)
    while True:
        busy.clear()
        wanted = inbox.take()
        busy.set()
        try:
            if isinstance(wanted, SelfTest):
                self_test_device()
                send(SelfTestResult(None))
                continue
            result = run_task(wanted, lambda share, details: send(Advance(share, details)), inbox.cancelled.is_set)
            send(Finished(result))
        except Exception as error:  # a task may fail in any way; the parent decides what that means
            send(SelfTestResult(str(error)) if isinstance(wanted, SelfTest) else _failed(error))


def _failed(error: Exception) -> Failed:
    from valleyscope.app.tasks.torch_device import device_fault

    device, disk = device_fault(error), disk_fault(error)
    fault: Fault | None = "device" if device is not None else "disk" if disk is not None else None
    cause = device or disk or error  # libraries wrap the error of a device or a disk in one of their own
    kind = type(cause).__name__
    full = disk is not None and disk.errno in FULL
    return Failed(str(cause) or kind, kind, traceback.format_exc(), fault, full)


class _Inbox:
    """Reads the pipe in a thread, so that a cancel or the end of the parent is noticed while a task computes."""

    def __init__(self, connection: Connection) -> None:
        self.cancelled = threading.Event()
        self._connection = connection
        self._waiting: list[Assignment | SelfTest] = []
        self._arrived = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> Assignment | SelfTest:
        with self._arrived:
            self._arrived.wait_for(lambda: bool(self._waiting))
            self.cancelled.clear()
            return self._waiting.pop(0)

    def _read(self) -> None:
        while True:
            try:
                message = self._connection.recv()
            except (EOFError, OSError):
                os._exit(0)  # the parent is gone
            if isinstance(message, Assignment | SelfTest):
                with self._arrived:
                    self._waiting.append(message)
                    self._arrived.notify()
            else:
                self.cancelled.set()
