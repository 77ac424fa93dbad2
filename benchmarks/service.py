"""What the service costs on top of the work itself: CPU time of an experiment, the wait for its start, and idleness.

    python benchmarks/service.py            # figures beside their limits
    python benchmarks/service.py --check    # the same, and exit status 1 where one is above its limit

The default experiment is run by `valley run` and through `valley serve` in turns, two workers each, on processes that
are measured as a whole: CPU seconds of the server, its workers and their children from the submission to the end,
against those of `valley run` with its children. A server's workers are warm, as they are in use; `valley run` loads
its libraries within the measured time, so that part is measured by itself and taken off. Memory is the proportional
set size (PSS), which counts a page that several processes share once in all.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).parents[1])  # this folder has a training.py, which must not stand for the package

import argparse
import os
import resource
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from valleyscope.app.commands.client import Client

HOUSE = Path(__file__).parents[1]
WORKERS = 2
CPU_LIMIT = 1.15
START_LIMIT = 0.5
IDLE_LIMIT = 0.06
MEMORY_LIMIT = 900.0
IDLE_AFTER = 70.0  # seconds; what is kept ready for the next question is given back by then
_TICK = os.sysconf("SC_CLK_TCK")
_TINY = {
    "name": "start",
    "model": {"name": "mlp"},
    "training": {"epochs": 1, "batch_size": 256},
    "minima": {"sgd": {}},
    "planes": {},
    "points": 3,
}


@dataclass(frozen=True)
class Server:
    """A running `valley serve`, seen from outside."""

    process: subprocess.Popen[str]
    client: Client

    def tree(self) -> list[int]:
        """The process and all its descendants."""
        parents: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                fields = _stat(int(entry.name))
                if fields:
                    parents.setdefault(int(fields[1]), []).append(int(entry.name))
        found = [self.process.pid]
        for pid in found:
            found += parents.get(pid, [])
        return found

    def cpu(self) -> float:
        """CPU seconds of the whole tree so far, those of children that ended included."""
        return sum(sum(map(int, fields[11:15])) for pid in self.tree() if (fields := _stat(pid))) / _TICK

    def memory(self) -> float:
        """PSS of the whole tree in MB."""
        return sum(_pss(pid) for pid in self.tree())

    def run(self, submission: dict[str, object]) -> tuple[float, float]:
        """Run an experiment to its end; returns CPU seconds, and seconds from submission to start."""
        before = self.cpu()
        row = self.client.submit(submission)
        while row["state"] not in ("done", "failed", "cancelled"):
            time.sleep(0.5)
            row = self.client.experiment(row["id"])
        if row["state"] != "done":
            raise SystemExit(f"the experiment is {row['state']}: {row['error']}")
        return self.cpu() - before, _seconds_between(row["created"], row["started"])


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    command = [
        sys.executable,
        "-m",
        "valleyscope.app.cli",
        "serve",
        "--home",
        home,
        "--port",
        "0",
        "--workers",
        WORKERS,
    ]
    environment = os.environ | {"VALLEY_LOG_LEVEL": "WARNING", "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [*map(str, command)], cwd=HOUSE, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().split()[-1]
        yield Server(process, Client(address))
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def run_alone(base: Path, spec: Path | str) -> float:
    """CPU seconds of `valley run` with its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "valleyscope.app.cli", "run", spec, "--out", base, "--workers", WORKERS]
    subprocess.run([*map(str, command)], cwd=HOUSE, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def loading() -> float:
    """CPU seconds that `valley run` spends on loading libraries, in itself and in its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    parent, child = "import valleyscope.app.commands.run", "import torch._dynamo, valleyscope.app.tasks.tasks"
    for script in (parent, *[child] * WORKERS):
        subprocess.run([sys.executable, "-c", script], cwd=HOUSE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(pairs: int, idle_seconds: float) -> list[tuple[str, float, float, str]]:
    """Figures: what, value, limit, unit."""
    with tempfile.TemporaryDirectory(prefix="valley-") as folder, serving(Path(folder) / "home") as server:
        server.run(dict(_TINY))  # the workers are warm from here on
        starts = [server.run(dict(_TINY))[1] for _ in range(10)]
        loads = loading()
        alone, through = [], []
        for number in range(pairs):
            alone.append(run_alone(Path(folder) / f"run{number}", "digits") - loads)
            through.append(server.run({"recipe": "digits"})[0])
        time.sleep(IDLE_AFTER)
        before, began = server.cpu(), time.monotonic()
        time.sleep(idle_seconds)
        idle = (server.cpu() - before) / (time.monotonic() - began)
        memory = server.memory()
    print(
        f"valley run {statistics.mean(alone):.1f} CPU seconds without loading {loads:.1f}; "
        f"through the service {statistics.mean(through):.1f}"
    )
    return [
        ("CPU time through the service / valley run", sum(through) / sum(alone), CPU_LIMIT, ""),
        ("submission to start, median", statistics.median(starts), START_LIMIT, "s"),
        ("submission to start, longest of ten", max(starts), START_LIMIT, "s"),
        (f"idle server with {WORKERS} warm workers, of one core", 100 * idle, 100 * IDLE_LIMIT, "%"),
        (f"memory of the idle server with {WORKERS} warm workers", memory, MEMORY_LIMIT, "MB"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="what the service costs on top of the work itself")
    parser.add_argument("--check", action="store_true", help="exit with status 1 where a figure is above its limit")
    parser.add_argument("--pairs", type=int, default=1, help="runs of the default experiment on each side (default 1)")
    parser.add_argument("--idle", type=float, default=30.0, help="seconds of idleness to measure (default 30)")
    options = parser.parse_args()
    above = 0
    for what, value, limit, unit in measure(options.pairs, options.idle):
        above += value > limit
        print(f"{what:55} {value:8.3f} {unit:3} limit {limit:g}{'' if value <= limit else '  above'}", flush=True)
    return 1 if options.check and above else 0


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat after the name, which may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def _pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(float(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1000


def _seconds_between(first: str, second: str) -> float:
    from datetime import datetime

    return (datetime.fromisoformat(second) - datetime.fromisoformat(first)).total_seconds()


if __name__ == "__main__":
    sys.exit(main())
