"""The desk replaces a child that is stuck, and waits for one that is merely slow."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.experiments.plan import Kind, Task
from app.experiments.results import Result, TrainedMinimum
from app.experiments.spec import Spec
from app.runners.child import Assignment
from app.runners.desk import STALL_SECONDS, ChildDied, Desk, Interrupted
from tests.app.cluster import TINY

SILENCE = 8.0
"""After so many seconds without a sign of life a child is replaced here."""


@pytest.fixture
def desk() -> Iterator[Desk]:
    found = Desk("cpu", stall_seconds=SILENCE)
    yield found
    found.clear()


def assignment(directory: Path, model: dict[str, object], epochs: int) -> Assignment:
    spec = Spec.model_validate(TINY | {"model": model, "training": {"epochs": epochs, "batch_size": 1437}})
    (directory / "work").mkdir(parents=True)
    return Assignment(Task(Kind.TRAIN, "sgd"), spec, directory, None, {})


def test_a_child_that_is_stopped_counts_as_dead_and_the_next_one_goes_on(desk: Desk, tmp_path: Path) -> None:
    work = assignment(tmp_path, {"name": "mlp"}, 3)
    desk.warm_up()
    [child] = desk.processes
    psutil.Process(child).suspend()
    with pytest.raises(ChildDied):
        desk.run(work, lambda _: None, lambda: None)
    assert isinstance(run_patiently(desk, work), TrainedMinimum)
    assert desk.processes != [child]


def run_patiently(desk: Desk, work: Assignment) -> Result:
    """With a new child, which a busy machine may need longer to start than the silence that is looked at here."""
    desk._stall_seconds = STALL_SECONDS
    try:
        return desk.run(work, lambda _: None, lambda: None)
    finally:
        desk._stall_seconds = SILENCE


def test_a_task_without_any_news_is_waited_for(desk: Desk, tmp_path: Path) -> None:
    """One step takes longer than the time after which a silent child is replaced."""
    run_patiently(desk, assignment(tmp_path / "another", {"name": "mlp"}, 1))
    work = assignment(tmp_path, {"name": "tests.app.plugins:slow", "seconds": 600.0}, 1)
    heard: list[float] = []
    began = time.monotonic()

    def look() -> float | None:
        return 0.0 if time.monotonic() - began > SILENCE + 4.0 else None

    with pytest.raises(Interrupted):
        desk.run(work, lambda message: heard.append(message.share), look)
    assert not heard
