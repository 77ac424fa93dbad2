"""/api/workers, /api/queue, /healthz, /readyz and /metrics."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from valleyscope.app.api.dependencies import State
from valleyscope.app.api.metrics import CONTENT_TYPE
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.schemas import Health, Queue, Ready, Workers

router = APIRouter(tags=["operations"])
root_router = APIRouter(tags=["operations"])


@router.get("/workers", response_model=Workers, responses=problems())
def workers(app_state: State) -> Any:
    """List the running workers: device, state and current task."""
    return {"items": app_state.service.workers()}


@router.get("/queue", response_model=Queue, responses=problems())
def queue(app_state: State) -> Any:
    """List the waiting tasks in the order in which workers take them."""
    return {"items": app_state.service.orchestrator_pool.jobs.queued_tasks()[:1000]}


@root_router.get("/healthz", response_model=Health, responses=problems())
async def healthz() -> Any:
    """Answer 200 while the process runs."""
    return Health(status="ok")


@root_router.get("/readyz", response_model=Ready, responses=problems())
def readyz(app_state: State) -> Any:
    """Answer 200 if the database and the store are reachable and the home can be written, otherwise 503."""
    checks = app_state.readiness.checks()
    failed = {name: found for name, found in checks.items() if found != "ok"}
    if failed:
        detail = "; ".join(f"{name}: {found}" for name, found in failed.items())
        raise Problem(503, "not-ready", detail, checks=checks)
    return Ready(status="ready", workers=len(app_state.service.workers()), checks=checks)


@root_router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "For Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(),
    },
)
def metrics(app_state: State) -> Response:
    """Metrics of readiness, queue, workers, tasks, grid points and latencies in the Prometheus text format."""
    return Response(app_state.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})
