"""How often orchestrators and workers query the database: the more there are, the less often each does."""

from __future__ import annotations

from valleyscope.app.jobs.orchestrator import refresh_seconds
from valleyscope.app.jobs.queue import orchestrated_at_once, poll_seconds


def test_few_orchestrators_refresh_every_second_and_many_share_ten_refreshes() -> None:
    assert [refresh_seconds(orchestrated) for orchestrated in (1, 10, 30, 100)] == [1.0, 1.0, 3.0, 10.0]


def test_all_workers_together_poll_no_more_than_fifty_times_a_second() -> None:
    assert poll_seconds(busy=True, workers=1) < poll_seconds(busy=False, workers=1) < 0.5
    assert poll_seconds(busy=False, workers=100) == 2.0
    assert poll_seconds(busy=True, workers=100) == 2.0


def test_there_is_work_for_every_worker_from_small_experiments() -> None:
    assert [orchestrated_at_once(workers) for workers in (0, 4, 50)] == [8, 8, 100]
