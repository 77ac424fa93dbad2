"""The device that this process computes on, how exactly it computes, and what happens when its memory is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

from valleyscope.app.experiments.spec_parts import Precision
from valleyscope.app.tasks.failures import exception_chain

T = TypeVar("T")

SMALLEST_BLOCK = 8
_MEMORY_WORDS = (
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)
"""What errors say that are of no class of their own: of the processor's allocator, the driver, and its libraries."""
_BROKEN_WORDS = (
    "CUDA error",
    "CUDA driver error",
    "cuDNN error",
    "CUDNN_STATUS",
    "CUBLAS_STATUS",
    "CUSOLVER_STATUS",
    "CUFFT_",
    "NVIDIA driver",
    "No CUDA GPUs are available",
)
"""What errors say after which a GPU, or what this process has of it, is of no more use."""
_wanted = "cpu"


class NoDevice(RuntimeError):
    """The device that this process was given is not there."""


_ACCELERATOR_ERROR: type[Exception] = getattr(torch, "AcceleratorError", NoDevice)
"""Before torch 2.8 errors of a GPU are RuntimeErrors, which `_BROKEN_WORDS` recognise."""


class MemoryFull(RuntimeError):
    """The device has too little memory for a task; the message says what to change."""


def set_device(device: str) -> None:
    """Say which device this process was given: cpu, or the one GPU that it was started to see."""
    global _wanted
    _wanted = device


def torch_device() -> torch.device:
    if _wanted == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise NoDevice(
            f"this worker was given {_wanted}, but torch {torch.__version__} finds no GPU: install a CUDA build of "
            "torch and a driver that fits it, or start the worker with --device cpu"
        )
    return torch.device("cuda", 0)


def device_name() -> str:
    """What the device is called, for the record."""
    device = torch_device()
    return "cpu" if device.type == "cpu" else torch.cuda.get_device_name(device)


def set_precision(precision: Precision) -> None:
    """Full float32 unless TF32 is asked for, and the same algorithm at every run.

    TF32 rounds factors to 10 bits, which shows in the third digit of a loss; mixed precision is not offered at all.
    """
    allowed = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True


def is_memory_full(error: BaseException) -> bool:
    """Whether an error says that the device, or the machine, has no more memory."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _MEMORY_WORDS)


def device_fault(error: BaseException) -> BaseException | None:
    """The error of a device behind another one: it is not there, or does not work, which is not for want of memory.

    After most errors of CUDA everything that the same process does on the GPU fails, too.
    """
    chain = list(exception_chain(error))
    if any(isinstance(cause, MemoryFull) or is_memory_full(cause) for cause in chain):
        return None
    return next((cause for cause in reversed(chain) if _is_device_fault(cause)), None)


def _is_device_fault(error: BaseException) -> bool:
    if isinstance(error, NoDevice | _ACCELERATOR_ERROR):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _BROKEN_WORDS)


def self_test_device() -> None:
    """Compute something tiny on the device; raises where that is impossible, or gives something else."""
    ones = torch.ones(8, 8, device=torch_device())
    found = float((ones @ ones).sum())
    if found != 512.0:
        raise NoDevice(f"{_wanted} gives {found:g} instead of 512 for the sum of a product of matrices")


def retry_smaller_blocks(action: Callable[[int | None], T], taken: Callable[[], int]) -> T:
    """Do something with so many samples at a time; when memory is full, with half of them, and so on.

    `action` is called with None at first, and chooses by itself; `taken` tells how many samples it took when it failed.
    Values differ only by rounding.
    """
    block: int | None = None
    while True:
        try:
            return action(block)
        except Exception as error:
            if not is_memory_full(error):
                raise
            failed = taken()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        if failed <= SMALLEST_BLOCK:
            raise MemoryFull(
                f"{device_name()} has too little memory for this network, even for {failed} samples at a time: "
                "use a device with more memory, fewer samples for BatchNorm statistics, or a smaller network"
            )
        block = max(SMALLEST_BLOCK, failed // 2)
