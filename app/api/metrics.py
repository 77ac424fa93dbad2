"""Prometheus metrics of the API, the queue, the workers and the tasks."""

from __future__ import annotations

import collections
import logging
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
    def __init__(self, service: Service, readiness: Readiness) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Histogram(
            "valley_request_seconds",
            "Time until the response starts",
            ("method", "route", "status"),
            buckets=_LATENCIES,
            registry=self.registry,
        )
        self.event_streams = Gauge("valley_event_streams", "Open event streams", registry=self.registry)
        old_name = Gauge("valley_watchers", "Deprecated name of valley_event_streams", registry=self.registry)
        old_name.set_function(lambda: next(iter(self.event_streams.collect())).samples[0].value)
        self.tasks = Histogram(
            "valley_task_seconds", "Duration of finished tasks", ("kind",), buckets=_DURATIONS, registry=self.registry
        )
        self.points = Counter("valley_grid_points", "Computed grid points", registry=self.registry)
        self.registry.register(_StateCollector(service, readiness))

    def count_event(self, event: EventRow) -> None:
        """Count a finished task and its grid points."""
        if event.kind not in ("progress", "tile") or '"seconds":' not in event.text:
            return
        data = event.data
        self.tasks.labels(str(data["task"]).partition(":")[0]).observe(data["seconds"])
        self.points.inc(len(data.get("rows", ())))

    def exposition(self) -> bytes:
        return generate_latest(self.registry)


class _StateCollector(Collector):
    """Reads database, disk and store on each scrape."""

    def __init__(self, service: Service, readiness: Readiness) -> None:
        self._service = service
        self._readiness = readiness

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        checks = self._readiness.checks()
        ready = GaugeMetricFamily("valley_ready", "1 if the check of /readyz succeeds", labels=("check",))
        for name, found in checks.items():
            ready.add_metric((name,), found == "ok")
        yield ready
        free = self._readiness.free_bytes()
        if free is not None:
            yield GaugeMetricFamily("valley_home_free_bytes", "Free space on the disk of the home", value=free)
        if checks["database"] != "ok":
            log.warning("metrics of the database are missing: %s", checks["database"])
            return  # another query would take just as long
        service = self._service
        try:
            queue = len(service.orchestrator_pool.jobs.queued_tasks())
            workers, states = service.workers(), service.experiment_table.count()
        except SQLAlchemyError as error:
            log.warning("metrics of the database are missing: %s", error)
            return
        yield GaugeMetricFamily("valley_queue_tasks", "Tasks waiting for a worker", value=queue)
        alive = GaugeMetricFamily("valley_workers", "Running workers", labels=("device", "state"))
        for (device, state), number in collections.Counter((worker.device, worker.state) for worker in workers).items():
            alive.add_metric((device, state), number)
        yield alive
        yield GaugeMetricFamily("valley_workers_alive", "Number of running workers", value=len(workers))
        experiments = GaugeMetricFamily("valley_experiments", "Experiments by state", labels=("state",))
        for name, number in states.items():
            experiments.add_metric((name,), number)
        yield experiments
