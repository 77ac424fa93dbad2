"""What happens to real clusters, done to a deployment: each fault names its victim, and is over when it returns."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx
from sqlalchemy.exc import SQLAlchemyError

from tests.cluster.deployment import Deployment, Process
from valleyscope.app.jobs.reaper import GRACE_SECONDS
from valleyscope.app.jobs.task_table import MAX_CRASHES

OUTAGE_SECONDS = 10.0
_RECOVERY_PATIENCE = 300.0


@dataclass
class Outcome:
    """One fault, and the seconds from its effect to the moment at which all work that it touched went on."""

    kind: str
    seconds: float
    touched: int


@dataclass
class Saboteur:
    """Does damage at random, and keeps everything at its number: three workers and an API."""

    deployment: Deployment
    chance: random.Random
    lease_seconds: float
    condemned: set[int] = field(default_factory=set)
    """Processes that were killed, or silent for longer than anyone waits: others may take their work."""
    outcomes: list[Outcome] = field(default_factory=list)

    def strike(self, kind: str) -> Outcome:
        """Do one kind of damage to a victim that works at something, and wait until all has recovered."""
        self.deployment.until(self.deployment.running, 300, "nothing runs that could be disturbed")
        outcome = self._faults()[kind]()
        self.outcomes.append(outcome)
        return outcome

    def _faults(self) -> dict[str, Callable[[], Outcome]]:
        return {
            "worker killed": self.kill_worker,
            "child killed": self.kill_child,
            "API killed": self.kill_api,
            "worker stopped shortly": self.pause_worker,
            "worker stopped for long": self.pause_worker_for_long,
            "API stopped shortly": self.pause_api,
            "worker never returns": self.freeze_worker,
            "child never returns": self.freeze_child,
            "wire swallows shortly": self.swallow_shortly,
            "wire swallows for long": self.swallow_for_long,
            "wire is reset": self.reset_wire,
            "Postgres stopped": self.stop_postgres,
        }

    def kill_worker(self) -> Outcome:
        victim, touched = self._victim()
        self.condemned.add(victim.pid)
        victim.kill()
        self._replace(victim)
        return self._recovered("worker killed", touched)

    def kill_child(self) -> Outcome:
        victim, touched = self._victim()
        for pid in victim.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self._recovered("child killed", touched)

    def kill_api(self) -> Outcome:
        self.condemned.add(self.deployment.api.pid)
        touched = self.deployment.running()
        self.deployment.api.kill()
        began = time.monotonic()
        self.deployment.start_api()
        return self._recovered("API killed", touched, began)

    def pause_worker(self) -> Outcome:
        victim, touched = self._victim()
        with stopped(victim):
            time.sleep(self._shortly())
        return self._recovered("worker stopped shortly", touched)

    def pause_worker_for_long(self) -> Outcome:
        victim, touched = self._victim()
        self.condemned.add(victim.pid)
        began = time.monotonic()
        with stopped(victim):
            outcome = self._recovered("worker stopped for long", touched, began)
        self._rejoined(victim)
        return outcome

    def pause_api(self) -> Outcome:
        touched = self.deployment.running()
        with stopped(self.deployment.api):
            time.sleep(self._shortly())
        return self._recovered("API stopped shortly", touched)

    def freeze_worker(self) -> Outcome:
        """It stays stopped for ever; an operator starts another one."""
        victim, touched = self._victim()
        self.condemned.add(victim.pid)
        victim.popen.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        self._replace(victim, end=False)
        return self._recovered("worker never returns", touched, began)

    def freeze_child(self) -> Outcome:
        victim, touched = self._victim()
        for pid in victim.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        return self._recovered("child never returns", touched)

    def swallow_shortly(self) -> Outcome:
        victim, touched = self._victim()
        assert victim.wire is not None
        victim.wire.swallow()
        time.sleep(self._shortly())
        victim.wire.heal()
        return self._recovered("wire swallows shortly", touched)

    def swallow_for_long(self) -> Outcome:
        victim, touched = self._victim()
        assert victim.wire is not None
        self.condemned.add(victim.pid)
        began = time.monotonic()
        victim.wire.swallow()
        outcome = self._recovered("wire swallows for long", touched, began)
        victim.wire.heal()
        self._rejoined(victim)
        return outcome

    def reset_wire(self) -> Outcome:
        """A reset tells the server at once that a process is gone, so only a short one spares its work."""
        victim, touched = self._victim()
        assert victim.wire is not None
        seconds = self.chance.choice((0.0, 3.0 * GRACE_SECONDS))
        if seconds > 0:
            self.condemned.add(victim.pid)
        victim.wire.sever()
        time.sleep(seconds)
        victim.wire.heal()
        outcome = self._recovered("wire is reset", touched)
        self._rejoined(victim)
        return outcome

    def stop_postgres(self) -> Outcome:
        touched = self.deployment.running()
        self.deployment.postgres.stop(self.chance.choice(("fast", "immediate")))
        time.sleep(OUTAGE_SECONDS)
        self.deployment.postgres.start()
        return self._recovered("Postgres stopped", touched)

    def _victim(self) -> tuple[Process, dict[tuple[str, str], Any]]:
        """A worker that works at something, and what that is.

        A task under which two processes died without any progress is spared: a third death would be its own fault.
        """
        found: list[tuple[Process, dict[tuple[str, str], Any]]] = []

        def look() -> bool:
            roster = self.deployment.roster()
            for worker in self.deployment.workers:
                touched = self.deployment.running(roster[worker.pid]) if worker.pid in roster else {}
                if touched and all(row.crashes < MAX_CRASHES - 1 for row in touched.values()):
                    found.append((worker, touched))
            return bool(found)

        self.deployment.until(look, 300, "no worker works")
        return self.chance.choice(found)

    def _replace(self, victim: Process, *, end: bool = True) -> None:
        self.deployment.workers.remove(victim)
        if not end:
            self.deployment.frozen.append(victim)
        self.deployment.start_worker()

    def _shortly(self) -> float:
        """A silence that must be forgiven, with room for a slow machine."""
        return self.chance.uniform(0.1, 0.4) * self.lease_seconds

    def _rejoined(self, victim: Process) -> None:
        self.deployment.until(lambda: victim.pid in self.deployment.roster(), 120, "the worker does not come back")

    def _recovered(self, kind: str, touched: dict[tuple[str, str], Any], began: float | None = None) -> Outcome:
        """Wait until every task that ran goes on, elsewhere or where it was, or has ended."""
        began = time.monotonic() if began is None else began

        def goes_on() -> bool:
            with suppress(SQLAlchemyError, httpx.TransportError):
                now = self.deployment.tasks()
                return all(_moved(row, now.get(key)) for key, row in touched.items())
            return False

        self.deployment.until(goes_on, _RECOVERY_PATIENCE, f"{kind}: {sorted(touched)} did not go on")
        return Outcome(kind, time.monotonic() - began, len(touched))


@contextmanager
def stopped(process: Process) -> Iterator[None]:
    """SIGSTOP for the length of a block."""
    process.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.popen.send_signal(signal.SIGCONT)


def _moved(before: Any, after: Any) -> bool:
    if after is None or after.state not in ("queued", "running", "gone"):
        return True
    if after.state != "running":
        return False
    return (after.worker, after.attempts, after.share, after.crashes) != (
        before.worker,
        before.attempts,
        before.share,
        before.crashes,
    )
