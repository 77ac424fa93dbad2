"""A worker that cannot write its home or compute on its device takes no work, and fails no experiment.

Homes are made read-only in a mount namespace of the worker's own; GPUs are played by a script in place of nvidia-smi,
and by networks that raise what torch raises.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.app.cluster import _HOUSE, _SETTINGS, TINY, Cluster
from valleyscope.app.storage.home import Home
from valleyscope.app.tasks import torch_device
from valleyscope.app.tasks.failures import WorkerFault, disk_fault
from valleyscope.app.tasks.torch_device import MemoryFull, NoDevice, device_fault, self_test_device
from valleyscope.app.worker import self_test
from valleyscope.app.worker.child_runner import ChildRunner
from valleyscope.app.worker.health_file import HealthFile, Unhealthy, check_health_file
from valleyscope.app.worker.self_test import WorkerSelfTest

pytestmark = pytest.mark.long

_ALONE = ("unshare", "--map-root-user", "--mount")
_GPU = f"{_SETTINGS}; from valleyscope.app.worker.worker import run_worker; run_worker(s, device='gpu')"
_CPU = f"{_SETTINGS}; from valleyscope.app.worker.worker import run_worker; run_worker(s, device='cpu')"


class Ward(Cluster):
    """A service whose database lies beside its home, with workers that have a trouble and a heartbeat of their own."""

    def __init__(self, base: Path) -> None:
        (base / "database").mkdir()
        super().__init__(base / "home", f"sqlite:///{base / 'database' / 'valley.db'}")
        self.base = base
        self.beat = base / "beat"
        self.log = base / "log"

    def hire(self, *prefix: str, script: str = _CPU, **environment: str) -> subprocess.Popen[str]:
        command = [*prefix, sys.executable, "-c", script, str(self.home), self.url]
        env = os.environ | {"VALLEY_HEARTBEAT": str(self.beat)} | environment
        with self.log.open("a", encoding="utf-8") as log:
            worker = subprocess.Popen(command, cwd=_HOUSE, text=True, env=env, stderr=log)
        self.workers.append(worker)
        return worker

    def hire_ill(self, trouble: str) -> subprocess.Popen[str]:
        """A worker in a mount namespace of its own, in which a command is run first."""
        if subprocess.run([*_ALONE, "true"], capture_output=True, check=False).returncode:
            pytest.skip("a home that is read-only for one worker needs user namespaces")
        return self.hire(*_ALONE, "sh", "-c", f'{trouble} && exec "$@"', "sh")

    def inside(self, worker: subprocess.Popen[str], command: str) -> None:
        there = ("nsenter", f"--target={worker.pid}", "--user", "--preserve-credentials", "--mount")
        subprocess.run([*there, "sh", "-c", command], check=True, capture_output=True)

    def fault(self) -> str | None:
        try:
            check_health_file(self.beat)
        except Unhealthy as error:
            return str(error)
        return None

    def refusal(self) -> str:
        """Why the worker takes no work; empty where it says nothing of that."""
        said = self.fault() or ""
        return said if "takes no work" in said else ""


@pytest.fixture
def ward(tmp_path: Path) -> Iterator[Ward]:
    with closing(Ward(tmp_path)) as found:
        found.start_api()
        yield found


def read_only(home: Path) -> str:
    return f"mount --bind {home} {home} && mount -o remount,bind,ro {home}"


def test_a_worker_on_a_read_only_home_waits_and_fails_nothing(ward: Ward) -> None:
    experiment = ward.submit(TINY)
    ill = ward.hire_ill(read_only(ward.home))
    assert f"home='{ward.home}' cannot be written (Read-only file system)" in ward.until(ward.refusal)
    assert ward.get(experiment).state in ("queued", "running")
    ward.until(lambda: any("; takes no work: home=" in str(row.device_name) for row in ward.living_workers()))
    assert not [row for row in ward.living_workers() if row.state == "busy"]
    ward.inside(ill, f"mount -o remount,bind,rw {ward.home}")
    ward.wait(experiment, "done")
    ward.until(lambda: ward.fault() is None)
    ward.until(lambda: not [row for row in ward.living_workers() if "takes no work" in str(row.device_name)])
    assert "Traceback" not in ward.log.read_text(encoding="utf-8")


def test_a_home_that_turns_read_only_sends_the_task_to_another_worker(ward: Ward, tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.touch()
    model = {"name": "tests.app.plugins:held", "marker": str(marker)}
    experiment = ward.submit(TINY | {"model": model, "minima": {"sgd": {"epochs": 60}}, "curves": {}, "planes": {}})
    ill = ward.hire_ill("true")
    ward.until(lambda: any(event.kind == "epoch" for event in ward.events(experiment)))
    ward.inside(ill, f"mount --bind -o ro {ward.home} {ward.home}")
    ward.until(lambda: "Read-only file system" in (ward.fault() or ""))
    ward.until(lambda: ward.task(experiment, "train:sgd").state == "queued")
    marker.unlink()
    ward.start_workers(1)
    ward.wait(experiment, "done")
    task = ward.task(experiment, "train:sgd")
    assert task.state == "gone" or (task.attempts >= 2 and task.crashes == 0)


def test_a_gpu_that_torch_cannot_use_takes_no_work(ward: Ward, tmp_path: Path) -> None:
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '0, GPU-aaaa-1, Tesla T4, 0, 15360'\n")
    tool.chmod(0o755)
    experiment = ward.submit(TINY)
    ward.hire(script=_GPU, PATH=f"{tool.parent}{os.pathsep}{os.environ['PATH']}")
    assert "finds no GPU" in ward.until(ward.refusal)
    assert ward.get(experiment).state in ("queued", "running")
    ward.start_workers(1)
    ward.wait(experiment, "done")


def unlucky(marker: Path, *, once: bool) -> dict[str, Any]:
    model = {"name": "tests.app.plugins:unlucky", "marker": str(marker), "once": once}
    return TINY | {"model": model, "minima": {"sgd": {}}, "curves": {}, "planes": {}}


def test_after_an_error_of_cuda_a_fresh_process_goes_on(ward: Ward, tmp_path: Path) -> None:
    """The first error leaves its process such that all that comes after it fails."""
    ward.hire()
    ward.wait(ward.submit(unlucky(tmp_path / "once", once=True)), "done")
    assert len((tmp_path / "once").read_text(encoding="ascii").split()) == 1


@pytest.mark.drill
def test_a_task_that_always_breaks_cuda_fails_and_the_worker_goes_on(ward: Ward, tmp_path: Path) -> None:
    ward.hire()
    always = ward.submit(unlucky(tmp_path / "always", once=False))
    row = ward.wait(always, "failed")
    assert "train:sgd: CUDA error: device-side assert triggered, 3 times without progress" in str(row.error)
    assert len(set((tmp_path / "always").read_text(encoding="ascii").split())) == 3
    ward.wait(ward.submit(TINY), "done")


@pytest.mark.parametrize(
    ("error", "broken"),
    [
        (NoDevice("there is none"), True),
        (torch.AcceleratorError("CUDA error: an illegal memory access was encountered"), True),
        (RuntimeError("CUDA error: uncorrectable ECC error encountered"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), True),
        (RuntimeError("The NVIDIA driver on your system is too old (found version 12020)"), True),
        (torch.AcceleratorError("CUDA error: out of memory"), False),
        (torch.OutOfMemoryError("CUDA out of memory"), False),
        (MemoryFull("too little"), False),
        (RuntimeError("shapes do not fit"), False),
        (ValueError("CUDA error: launch failure"), False),
    ],
)
def test_errors_of_a_device_are_told_from_those_of_a_task(error: Exception, broken: bool) -> None:
    assert (device_fault(error) is error) is broken
    wrapped = MemoryFull("lower it")
    wrapped.__cause__ = error
    assert device_fault(wrapped) is None


def test_a_disk_is_found_behind_the_words_of_a_library() -> None:
    wrapped = RuntimeError("unexpected pos 704 vs 598")
    wrapped.__context__ = OSError(errno.ENOSPC, "No space left on device")
    assert disk_fault(wrapped) is wrapped.__context__
    assert disk_fault(FileNotFoundError(errno.ENOENT, "no such file")) is None
    assert disk_fault(OSError("the store does not answer")) is None


def test_a_device_is_tested_by_what_it_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    self_test_device()
    monkeypatch.setattr(torch_device, "_wanted", "cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoDevice, match="finds no GPU"):
        self_test_device()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch, "ones", lambda *_, **__: torch.full((8, 8), 1.5))
    with pytest.raises(NoDevice, match="gives 1152 instead of 512"):
        self_test_device()


def test_a_child_says_what_is_wrong_with_its_device_and_a_processor_needs_none() -> None:
    child_runner = ChildRunner("cpu")
    assert child_runner.self_test(lambda: None) is None
    assert not child_runner.warm
    child_runner = ChildRunner("cuda:99")
    assert "was given cuda:99" in str(child_runner.self_test(lambda: None))
    assert not child_runner.warm


def test_the_self_test_decides_whether_the_worker_is_the_cause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(self_test.time, "monotonic", lambda: now[0])
    answers: list[str | None] = [None, None, "it fell off the bus", None]
    found = WorkerSelfTest(Home(tmp_path / "home"), lambda: answers.pop(0))
    assert (found.ready, found.due) == (False, True)
    assert found.run()
    assert (found.ready, found.due) == (True, False)

    trouble = WorkerFault("CUDA error: launch failure")
    assert not found.run_after_failure(trouble)  # the worker is healthy: another one can try the task
    assert (found.ready, found.due, found.fault) == (False, False, None)
    now[0] += 1.0
    assert found.ready

    assert found.run_after_failure(trouble)
    assert found.fault == "it fell off the bus"
    now[0] += 1.0
    assert (found.ready, found.due) == (False, False)  # each time it waits longer
    now[0] += 1.0
    assert found.due
    assert found.run()


def test_a_disk_that_was_full_needs_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = WorkerSelfTest(Home(tmp_path), lambda: None)
    assert found.run()
    room = [2**20]
    usage = self_test.Home.probe_work.__globals__["shutil"]
    monkeypatch.setattr(usage, "disk_usage", lambda _: usage._ntuple_diskusage(2**40, 0, room[0]))
    assert found.run_after_failure(WorkerFault("[Errno 28] No space left on device", full=True))
    assert "No space left on device" in str(found.fault)
    room[0] = self_test.SPARE
    assert found.run()


def test_a_heartbeat_says_why_its_worker_takes_no_work(tmp_path: Path) -> None:
    heartbeat = HealthFile(tmp_path / "beat", "worker-1", "its home is read-only")
    with pytest.raises(Unhealthy, match="worker-1 takes no work: its home is read-only"):
        check_health_file(tmp_path / "beat")
    heartbeat.beat()
    assert check_health_file(tmp_path / "beat") == "worker-1"
    heartbeat.end()
