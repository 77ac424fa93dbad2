"""Which GPU a worker uses: the first visible one that no other worker holds a lease on.

Docker gives every replica of a service the same devices, and `count: 1` is always the first one. So workers see all
GPUs of their machine, and each leases one by its UUID, which is the same in every container.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from valleyscope.app.devices import Gpu, gpus
from valleyscope.app.jobs.leases import LEASE_SECONDS, Lease, hold_lease, take_lease
from valleyscope.app.settings import BadSettings
from valleyscope.app.storage.database import Database

ANY_GPU = "gpu"


@dataclass(frozen=True)
class GpuLease:
    """A GPU that this worker uses while it holds the lease."""

    gpu: Gpu
    lease: Lease

    @property
    def shown(self) -> str:
        """The device for people: the number that the driver gives it here."""
        return f"cuda:{self.gpu.index}"

    @property
    def pinned(self) -> str:
        """The device for CUDA, which may count in another order than the driver."""
        return f"cuda:{self.gpu.uuid}"


def lease_gpu(
    database: Database, *, seconds: float = LEASE_SECONDS, on_taken: Callable[[], None] = lambda: None
) -> GpuLease:
    """Lease the first GPU that is free. Call it inside `database.exclusive`, so that no two workers do so at once.

    A worker that is silent for `seconds` loses the lease; if another worker then takes the GPU, `on_taken` is called.
    """
    found = gpus()
    for gpu in found:
        with take_lease(database, _name(gpu)) as free:
            pass
        if free:
            return GpuLease(gpu, hold_lease(database, _name(gpu), seconds=seconds, on_taken=on_taken))
    if not found:
        raise BadSettings(
            "device is 'gpu', and nvidia-smi shows none here: give the worker one (in a container with the capability "
            "`utility`), or start it with --device cpu"
        )
    raise BadSettings(f"device is 'gpu', and all {len(found)} here have a worker: start no more workers than GPUs")


def _name(gpu: Gpu) -> str:
    return f"gpu-{gpu.uuid}"
