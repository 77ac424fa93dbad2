"""How often orchestrators and workers look around: the more there are, the more seldom each does."""

from __future__ import annotations

from valleyscope.app.jobs.orchestrator import refresh_seconds
from valleyscope.app.jobs.queue import orchestrated_at_once, poll_seconds


def test_few_conductors_look_every_second_and_many_share_ten_looks() -> None:
    assert [refresh_seconds(conducted) for conducted in (1, 10, 30, 100, 1000)] == [1.0, 1.0, 3.0, 10.0, 10.0]


def test_idle_workers_together_ask_no_more_than_fifty_times_a_second() -> None:
    assert poll_seconds(busy=False, workers=1) == 0.35
    assert poll_seconds(busy=False, workers=100) == 2.0
    assert poll_seconds(busy=True, workers=100) == 2.0
    assert poll_seconds(busy=False, workers=10_000) == 5.0


def test_there_is_work_for_every_worker_from_small_experiments() -> None:
    assert [orchestrated_at_once(workers) for workers in (0, 4, 50)] == [8, 8, 100]
