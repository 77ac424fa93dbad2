"""The desk replaces a child that is stuck, and waits for one that is merely slow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.experiments.plan import Kind, Task
from app.experiments.results import TrainedMinimum
from app.experiments.spec import Spec
from app.runners.child import Assignment
from app.runners.desk import ChildDied, Desk, Interrupted
from tests.app.cluster import TINY


@pytest.fixture
def desk() -> Iterator[Desk]:
    found = Desk("cpu", stall_seconds=6.0)
    yield found
    found.clear()


def assignment(directory: Path, model: dict[str, object], epochs: int) -> Assignment:
    spec = Spec.model_validate(TINY | {"model": model, "training": {"epochs": epochs, "batch_size": 1437}})
    (directory / "work").mkdir()
    return Assignment(Task(Kind.TRAIN, "sgd"), spec, directory, None, {})


def test_a_child_that_is_stopped_counts_as_dead_and_the_next_one_goes_on(desk: Desk, tmp_path: Path) -> None:
    work = assignment(tmp_path, {"name": "mlp"}, 3)
    desk.warm_up()
    [child] = [found for found in psutil.Process().children() if any("spawn_main" in word for word in found.cmdline())]
    child.suspend()
    with pytest.raises(ChildDied):
        desk.run(work, lambda _: None, lambda: None)
    assert isinstance(desk.run(work, lambda _: None, lambda: None), TrainedMinimum)


def test_a_task_without_any_news_is_waited_for(desk: Desk, tmp_path: Path) -> None:
    """One step takes longer than the time after which a silent child is replaced."""
    work = assignment(tmp_path, {"name": "tests.app.plugins:slow", "seconds": 8.0}, 1)
    heard: list[float] = []
    looks: list[int] = []

    def look() -> float | None:
        looks.append(1)
        return 0.0 if len(looks) > 25 else None  # ten seconds of silence and more

    with pytest.raises(Interrupted):
        desk.run(work, lambda message: heard.append(message.share), look)
    assert not heard
