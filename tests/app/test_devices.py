"""GPUs are found without torch, each worker sees its own, and too little memory ends in smaller steps or plain words.

Tests need no GPU: NVIDIA's tool is replaced by a program that prints what it prints, and of torch only the calls that
would reach a device.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from valleyscope.app.devices import checked_device, describe, devices_for, environment_of, gpus, memory_of
from valleyscope.app.experiments.plan import plan
from valleyscope.app.experiments.recipes import DEMO, load_recipe
from valleyscope.app.experiments.spec import Spec, parse_spec
from valleyscope.app.settings import BadSettings
from valleyscope.app.tasks import torch_device
from valleyscope.app.tasks.context import TaskContext
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.tasks.torch_device import MemoryFull, NoDevice, is_memory_full, retry_smaller_blocks, set_precision
from valleyscope.app.worker.child_process import Child, Failed, Heartbeat

CARDS = """\
0, GPU-aaaa-1, NVIDIA A100-SXM4-80GB, 1024, 81920
1, GPU-bbbb-2, NVIDIA A100-SXM4-80GB, 0, 81920
2, GPU-cccc-3, Tesla T4, [N/A], 15360
"""


@pytest.fixture
def cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with three GPUs, as far as NVIDIA's tool can tell."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\ncat <<'END'\n{CARDS}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tool


def test_every_gpu_gets_a_worker(cards: Path) -> None:
    assert cards.exists()
    assert devices_for(None) == ["cuda:0", "cuda:1", "cuda:2"]
    assert devices_for(4) == ["cuda:0", "cuda:1", "cuda:2", "cuda:0"]
    assert devices_for(1) == ["cuda:0"]
    assert checked_device(None) == "cuda:0"
    assert describe("cuda:2") == "Tesla T4"
    memory = memory_of("cuda:0", [])
    assert memory is not None
    assert (memory.used, memory.total) == (2**30, 80 * 2**30)


@pytest.mark.parametrize(
    ("visible", "expected"), [("1", ["1"]), ("2,0", ["2", "0"]), ("GPU-bbbb-2", ["1"]), ("", []), ("7", [])]
)
def test_only_visible_gpus_count(
    cards: Path, monkeypatch: pytest.MonkeyPatch, visible: str, expected: list[str]
) -> None:
    assert cards.exists()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert [gpu.index for gpu in gpus()] == expected


def test_without_a_gpu_each_core_gets_a_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == []
    assert devices_for(3) == ["cpu"] * 3
    assert set(devices_for(None)) == {"cpu"}
    assert checked_device(None) == "cpu"
    memory = memory_of("cpu", [os.getpid()])
    assert memory is not None
    assert 0 < memory.used < memory.total


def test_without_an_answer_from_the_driver_there_is_no_gpu(cards: Path) -> None:
    cards.write_text("#!/bin/sh\necho 'NVIDIA-SMI has failed' ; exit 9\n")
    assert gpus() == []
    with pytest.raises(BadSettings, match=r"device is 'cuda:0': use a GPU .* show here: none"):
        checked_device("cuda:0")


@pytest.mark.parametrize("name", ["gpu", "cuda", "cuda:x", "cpu:0", "cuda:0;rm", ""])
def test_an_unknown_device_is_refused_by_name(name: str) -> None:
    with pytest.raises(BadSettings, match="device is"):
        checked_device(name)


def test_a_worker_on_a_missing_gpu_reports_it_and_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "valleyscope.app.cli", "worker", "--device", "cuda:5", "--home", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert ended.returncode != 0
    assert "device is 'cuda:5'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_child_sees_only_its_gpu_and_does_not_fall_back_to_the_cpu(tmp_path: Path) -> None:
    assert environment_of("cpu") == {"CUDA_VISIBLE_DEVICES": ""}
    assert environment_of("cuda:2")["CUDA_VISIBLE_DEVICES"] == "2"
    spec = small_spec()
    child = Child("cuda:99")  # no machine has that many, so this one is missing wherever the test runs
    try:
        child.start(Assignment(next(iter(plan(spec))), spec, tmp_path, None, {}))
        answer: object = Heartbeat()
        while isinstance(answer, Heartbeat):
            assert child.connection.poll(180)
            answer = child.connection.recv()
    finally:
        child.kill()
    assert isinstance(answer, Failed)
    assert "was given cuda:99" in answer.message


def test_a_gpu_that_torch_cannot_find_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_device, "_wanted", "cuda:1")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(NoDevice, match=r"was given cuda:1, but torch .* finds no GPU"):
        torch_device.torch_device()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert torch_device.torch_device() == torch.device("cuda", 0)


def test_tf32_is_off_unless_asked_for() -> None:
    try:
        set_precision("tf32")
        assert torch.backends.cuda.matmul.allow_tf32
        assert torch.backends.cudnn.allow_tf32
    finally:
        set_precision("float32")
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    assert load_recipe(DEMO).precision == "float32"


def test_blocks_shrink_until_they_fit_and_this_is_logged() -> None:
    tried: list[int | None] = []

    def attempt(block: int | None) -> str:
        tried.append(block)
        if (block or 100) > 30:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return "done"

    assert retry_smaller_blocks(attempt, lambda: tried[-1] or 100) == "done"
    assert tried == [None, 50, 25]

    def never(block: int | None) -> str:
        tried.append(block)
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(MemoryFull, match="even for 8 samples at a time"):
        retry_smaller_blocks(never, lambda: tried[-1] or 100)
    with pytest.raises(ZeroDivisionError):
        retry_smaller_blocks(lambda _: 1 // 0, lambda: 1)  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), True),
        (torch.AcceleratorError("CUDA error: out of memory"), True),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), True),
        (MemoryError(), True),
        (RuntimeError("CUDA error: device-side assert triggered"), False),
        (ValueError("CUDA error: out of memory"), False),
    ],
)
def test_every_out_of_memory_error_is_recognised(error: Exception, full: bool) -> None:
    assert is_memory_full(error) is full


def small_spec() -> Spec:
    training = {"epochs": 1, "batch_size": 64}
    return parse_spec(
        {"minima": {"sgd": {}}, "model": {"name": "mlp"}, "training": training, "samples": 200}, source="spec"
    )


def test_an_evaluation_that_does_not_fit_is_done_in_smaller_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = TaskContext(small_spec(), tmp_path, None, {})
    origin = torch.nn.utils.parameters_to_vector(bench.network().parameters()).detach().unsqueeze(0)
    expected = bench.evaluate(lambda evaluator: evaluator.at(origin, [[1.0]]))["train"].loss
    plain, sizes = torch.nn.functional.linear, []

    def limited(x: Tensor, *rest: Tensor) -> Tensor:
        sizes.append(len(x))
        if len(x) > 40:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return plain(x, *rest)

    monkeypatch.setattr(torch.nn.functional, "linear", limited)
    bench = TaskContext(small_spec(), tmp_path, None, {})
    found = bench.evaluate(lambda evaluator: evaluator.at(origin, [[1.0]]))["train"].loss
    assert max(sizes) > 40
    assert found == pytest.approx(expected, rel=1e-6)
