"""A service over several "hosts": processes that have a home each, and only the database and the store in common."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.app.cluster import _HOUSE, _WORKER, Cluster
from valleyscope.app.storage.file_store import ObjectStoreReplica
from valleyscope.app.storage.home import Home
from valleyscope.app.storage.object_store import ObjectStore

_OFTEN = (
    "from valleyscope.app.jobs import file_sync, maintenance; "
    "file_sync.PUSH_SECONDS = 0.3; maintenance._ROUND_SECONDS = 1.0"
)


class Hosts(Cluster):
    """The API in the folder `api`, workers in folders of their own, and one more for whoever looks at the store."""

    def __init__(self, base: Path, store: str, environment: Mapping[str, str], database: str | None = None) -> None:
        self.base = base
        self.store = store
        self.environment = {**os.environ, **environment, "VALLEY_STORE": store}
        (base / "database").mkdir()
        super().__init__(base / "api", database or f"sqlite:///{base / 'database' / 'valley.db'}", preamble=_OFTEN)
        self.objects = ObjectStore(store)
        self._hired = 0
        self._homes: dict[int, Path] = {}

    def hire(self) -> subprocess.Popen[str]:
        """Start a worker on a host that has nothing yet."""
        self._hired += 1
        home = self.base / f"worker-{self._hired}"
        worker = self._start(_WORKER, home=home)
        self._homes[worker.pid] = home
        self.workers.append(worker)
        return worker

    def worker(self, name: str) -> subprocess.Popen[str]:
        """The worker of this name on the roster."""
        return next(worker for worker in self.workers if f"worker-{worker.pid}-" in name)

    def dismiss(self, worker: subprocess.Popen[str]) -> None:
        """Kill a worker without warning, and lose its disk."""
        children = self.children(worker)
        home = self._homes.pop(worker.pid)
        self.kill_worker(self.workers.index(worker))
        for pid in children:
            self.until(lambda pid=pid: not Path(f"/proc/{pid}").exists() or _is_zombie(pid))
        shutil.rmtree(home, ignore_errors=not home.exists())  # it may not have come so far as to have one

    def copy(self, experiment: str) -> Path:
        """All that the store has of an experiment, in a new folder."""
        home = self.base / f"copy-of-{experiment}"
        ObjectStoreReplica(self.objects, Home(home)).pull(experiment, lambda _: True)
        return home / "experiments" / experiment

    def _start(self, script: str, **pipes: Any) -> subprocess.Popen[str]:
        home = pipes.pop("home", self.home)
        command = [sys.executable, "-c", f"{self.preamble}; {script}", str(home), self.url]
        with (self.base / f"{home.name}.log").open("a", encoding="utf-8") as log:
            return subprocess.Popen(command, cwd=_HOUSE, text=True, env=self.environment, stderr=log, **pipes)

    @property
    def logs(self) -> str:
        return "\n".join(path.read_text(encoding="utf-8") for path in self.base.glob("*.log"))


def _is_zombie(pid: int) -> bool:
    try:
        return ") Z " in Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
