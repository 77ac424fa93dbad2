"""The devices of this machine, found without torch: GPUs from nvidia-smi, else the CPU."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from valleyscope.app.settings import BadSettings
from valleyscope.landscape.network.memory_limit import machine_memory

CPU = "cpu"
_NAME = re.compile(r"cpu|cuda:(?P<index>\d+|GPU-[0-9a-fA-F-]+|MIG-[0-9A-Za-z/-]+)")
_FIELDS = ("index", "uuid", "name", "memory.used", "memory.total")
_MEBIBYTE = 2**20
_TIMEOUT_SECONDS = 10.0


@dataclass(frozen=True)
class Gpu:
    """A GPU as nvidia-smi reports it; memory in bytes."""

    index: str
    uuid: str
    name: str
    memory_used: int
    memory_total: int


@dataclass(frozen=True)
class Memory:
    """Bytes of a worker's device: used (by the worker on a CPU, by all processes on a GPU), and total."""

    used: int
    total: int


def gpus() -> list[Gpu]:
    """The GPUs in CUDA_VISIBLE_DEVICES, in its order; none if nvidia-smi is missing or fails."""
    found = {gpu.index: gpu for gpu in _all_gpus()}
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return list(found.values())
    by_name = found | {gpu.uuid: gpu for gpu in found.values()}
    return [by_name[name.strip()] for name in visible.split(",") if name.strip() in by_name]


def devices_for(count: int | None) -> list[str]:
    """A device for each of `count` processes; by default one process per GPU, else one per core."""
    found = [f"cuda:{gpu.index}" for gpu in gpus()]
    if not found:
        return [CPU] * (default_workers() if count is None else count)
    return [found[number % len(found)] for number in range(len(found) if count is None else count)]


def default_workers() -> int:
    """One single-threaded worker per core that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def checked_device(name: str | None) -> str:
    """A device by name, which must exist; without a name the first GPU, else the CPU."""
    present = gpus()
    if name is None:
        return f"cuda:{present[0].index}" if present else CPU
    match = _NAME.fullmatch(name)
    if match is None:
        raise BadSettings(f"device is {name!r}: use cpu, cuda:N, or cuda:GPU-... with the UUID of a GPU")
    index = match["index"]
    if index is not None and not any(index in (gpu.index, gpu.uuid) for gpu in present):
        names = ", ".join(f"cuda:{gpu.index}" for gpu in present) or "none"
        raise BadSettings(f"device is {name!r}: use a GPU that nvidia-smi and CUDA_VISIBLE_DEVICES show here: {names}")
    return name


def environment_of(device: str) -> dict[str, str]:
    """Environment variables to set before torch is imported, so the process sees only its device."""
    index = device.partition(":")[2]
    if not index:
        return {"CUDA_VISIBLE_DEVICES": ""}
    return {
        "CUDA_VISIBLE_DEVICES": index,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi; CUDA's default puts the fastest first
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",  # makes cuBLAS bit-reproducible
    }


def describe(device: str) -> str:
    """The product name of a device."""
    gpu = _gpu(device)
    return gpu.name if gpu is not None else f"{os.cpu_count()} cores"


def memory_of(device: str, processes: Iterable[int]) -> Memory | None:
    """Current memory of a device: of these processes on a CPU, of the whole card on a GPU."""
    if device == CPU:
        return Memory(sum(map(_resident_pages, processes)) * os.sysconf("SC_PAGE_SIZE"), machine_memory())
    gpu = _gpu(device)
    return None if gpu is None else Memory(gpu.memory_used, gpu.memory_total)


def _gpu(device: str) -> Gpu | None:
    index = device.partition(":")[2]
    return next((gpu for gpu in _all_gpus() if index in (gpu.index, gpu.uuid)), None) if index else None


def _all_gpus() -> list[Gpu]:
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return []
    command = [tool, f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []  # without an answer from the driver no GPU is usable
    rows = [[part.strip() for part in row] for row in csv.reader(text.splitlines()) if len(row) == len(_FIELDS)]
    return [Gpu(row[0], row[1], row[2], _mebibytes(row[3]), _mebibytes(row[4])) for row in rows]


def _mebibytes(text: str) -> int:
    return int(text) * _MEBIBYTE if text.isdigit() else 0  # some cards report [N/A]


def _resident_pages(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError, ValueError):
        return 0  # the process has ended, or this is not Linux
