"""The child_runner replaces a child that is stuck, and waits for one that is merely slow."""

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
from valleyscope.app.tasks.assignment import Assignment
from valleyscope.app.worker.child_runner import STALL_SECONDS, ChildDied, ChildRunner, Interrupted

SILENCE = 8.0
"""After so many seconds without a sign of life a child is replaced here."""


@pytest.fixture
def child_runner() -> Iterator[ChildRunner]:
    found = ChildRunner("cpu", stall_seconds=SILENCE)
    yield found
    found.clear()


def assignment(directory: Path, model: dict[str, object], epochs: int) -> Assignment:
    spec = Spec.model_validate(TINY | {"model": model, "training": {"epochs": epochs, "batch_size": 1437}})
    (directory / "work").mkdir(parents=True)
    return Assignment(Task(Kind.TRAIN, "sgd"), spec, directory, None, {})


def test_a_child_that_is_stopped_counts_as_dead_and_the_next_one_goes_on(
    child_runner: ChildRunner, tmp_path: Path
) -> None:
    work = assignment(tmp_path, {"name": "mlp"}, 3)
    child_runner.warm_up()
    [child] = child_runner.processes
    psutil.Process(child).suspend()
    with pytest.raises(ChildDied):
        child_runner.run(work, lambda _: None, lambda: None)
    assert isinstance(run_patiently(child_runner, work), TrainedMinimum)
    assert child_runner.processes != [child]


def run_patiently(child_runner: ChildRunner, work: Assignment) -> Result:
    """With a new child, which a busy machine may need longer to start than the silence that is looked at here."""
    child_runner._stall_seconds = STALL_SECONDS
    try:
        return child_runner.run(work, lambda _: None, lambda: None)
    finally:
        child_runner._stall_seconds = SILENCE


def test_a_task_without_any_news_is_waited_for(child_runner: ChildRunner, tmp_path: Path) -> None:
    """One step takes longer than the time after which a silent child is replaced."""
    run_patiently(child_runner, assignment(tmp_path / "another", {"name": "mlp"}, 1))
    work = assignment(tmp_path, {"name": "tests.app.plugins:slow", "seconds": 600.0}, 1)
    heard: list[float] = []
    began = time.monotonic()

    def look() -> float | None:
        return 0.0 if time.monotonic() - began > SILENCE + 4.0 else None

    with pytest.raises(Interrupted):
        child_runner.run(work, lambda message: heard.append(message.share), look)
    assert not heard
