"""The child runner replaces a child that is stuck, and waits for one that is slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.app.cluster import TINY
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import Spec
from valleyscope.app.experiments.task_results import Result, TrainedMinimum
from valleyscope.app.tasks.task_assignment import Assignment
from valleyscope.app.worker.child_runner import STALL_SECONDS, ChildCrashed, ChildRunner, Interrupted

SILENCE = 8.0
"""A child that sends no heartbeat for this many seconds is replaced here."""


@pytest.fixture
def child_runner() -> Iterator[ChildRunner]:
    found = ChildRunner("cpu", stall_seconds=SILENCE)
    yield found
    found.clear()


def assignment(directory: Path, model: dict[str, object], epochs: int) -> Assignment:
    spec = Spec.model_validate(TINY | {"model": model, "training": {"epochs": epochs, "batch_size": 1437}})
    (directory / "work").mkdir(parents=True)
    return Assignment(Task(Kind.TRAIN, "sgd"), spec, directory, None, {})


def test_a_stopped_child_counts_as_crashed_and_the_next_one_continues(
    child_runner: ChildRunner, tmp_path: Path
) -> None:
    work = assignment(tmp_path, {"name": "mlp"}, 3)
    child_runner.warm_up()
    [child] = child_runner.processes
    psutil.Process(child).suspend()
    with pytest.raises(ChildCrashed):
        child_runner.run(work, lambda _: None, lambda: None)
    assert isinstance(run_patiently(child_runner, work), TrainedMinimum)
    assert child_runner.processes != [child]


def run_patiently(child_runner: ChildRunner, work: Assignment) -> Result:
    """With a new child, which may take longer to start on a busy machine than the silence that is tested here."""
    child_runner._stall_seconds = STALL_SECONDS
    try:
        return child_runner.run(work, lambda _: None, lambda: None)
    finally:
        child_runner._stall_seconds = SILENCE


def test_a_task_without_progress_messages_is_waited_for(child_runner: ChildRunner, tmp_path: Path) -> None:
    """One step takes longer than the time after which a silent child is replaced."""
    run_patiently(child_runner, assignment(tmp_path / "another", {"name": "mlp"}, 1))
    work = assignment(tmp_path, {"name": "tests.app.plugins:slow", "seconds": 600.0}, 1)
    shares: list[float] = []
    began = time.monotonic()

    def should_stop() -> float | None:
        return 0.0 if time.monotonic() - began > SILENCE + 4.0 else None

    with pytest.raises(Interrupted):
        child_runner.run(work, lambda message: shares.append(message.share), should_stop)
    assert not shares
