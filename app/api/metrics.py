"""Metrics for Prometheus: what the API does, and what the catalogue knows of queue, workers and tasks."""

from __future__ import annotations

import logging
from collections import Counter as Tally
from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from sqlalchemy.exc import SQLAlchemyError

from valleyscope.app.api.readiness import Readiness
from valleyscope.app.api.service import Service
from valleyscope.app.storage.event_table import EventRow

log = logging.getLogger(__name__)

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
_LATENCIES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
_DURATIONS = (0.1, 0.5, 1, 5, 15, 60, 300, 1800, 7200, 36_000, 172_800)


class Metrics:
    """The registry of one service."""

    def __init__(self, service: Service, readiness: Readiness) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Histogram(
            "valley_request_seconds",
            "Time to the start of an answer",
            ("method", "route", "status"),
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self.watchers = Gauge("valley_watchers", "Open event streams", registry=self.registry)
        self.tasks = Histogram(
            "valley_task_seconds", "Duration of finished tasks", ("kind",), buckets=_DURATIONS, registry=self.registry
        )
        self.points = Counter(
            "valley_grid_points", "Grid points computed; its rate is points a second", registry=self.registry
        )
        self.registry.register(_Catalogued(service, readiness))

    def hear(self, event: EventRow) -> None:
        """Count the tasks that end, by the events that tell of it."""
        if event.kind not in ("progress", "tile") or '"seconds":' not in event.text:
            return
        data = event.data
        self.tasks.labels(str(data["task"]).partition(":")[0]).observe(data["seconds"])
        self.points.inc(len(data.get("rows", ())))

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


class _Catalogued(Collector):
    """Asks the experiment_table, and those who know of disk and store, when it is scraped."""

    def __init__(self, service: Service, readiness: Readiness) -> None:
        self._service = service
        self._readiness = readiness

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        checks = self._readiness.checks()
        ready = GaugeMetricFamily("valley_ready", "1 where /readyz has nothing to say against it", labels=("check",))
        for name, found in checks.items():
            ready.add_metric((name,), found == "ok")
        yield ready
        free = self._readiness.free_bytes()
        if free is not None:
            yield GaugeMetricFamily("valley_home_free_bytes", "Room on the disk of the home", value=free)
        if checks["database"] != "ok":
            log.warning("metrics without the experiment_table: %s", checks["database"])
            return  # asking once more would take as long again
        try:
            queue, workers, states = self._service.waiting(), self._service.workers(), self._service.count()
        except SQLAlchemyError as error:
            log.warning("metrics without the experiment_table: %s", error)
            return
        yield GaugeMetricFamily("valley_queue_tasks", "Tasks that wait for a worker", value=queue)
        alive = GaugeMetricFamily("valley_workers", "Workers that are alive", labels=("device", "state"))
        for (device, state), number in Tally((worker.device, worker.state) for worker in workers).items():
            alive.add_metric((device, state), number)
        yield alive
        yield GaugeMetricFamily("valley_workers_alive", "Workers that are alive, in all", value=len(workers))
        experiments = GaugeMetricFamily("valley_experiments", "Experiments by state", labels=("state",))
        for name, number in states.items():
            experiments.add_metric((name,), number)
        yield experiments
