"""Workers, queue, health, readiness and metrics: what an operator asks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from valleyscope.app.api.dependencies import State
from valleyscope.app.api.metrics import CONTENT_TYPE
from valleyscope.app.api.openapi import problems
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.schemas import Health, Queue, QueuedTask, Ready, Worker, Workers

router = APIRouter(tags=["operations"])
root_router = APIRouter(tags=["operations"])


@router.get("/workers", response_model=Workers, responses=problems())
def workers(app_state: State) -> Any:
    """Who is alive, on which device, doing what, since when."""
    return Workers(items=[Worker.model_validate(row) for row in app_state.service.workers()])


@router.get("/queue", response_model=Queue, responses=problems())
def queue(app_state: State) -> Any:
    """Tasks that wait, in the order in which workers take them."""
    return Queue(items=[QueuedTask.model_validate(row) for row in app_state.service.queue()])


@root_router.get("/healthz", response_model=Health, responses=problems())
async def healthz() -> Any:
    """Whether the process answers."""
    return Health(status="ok")


@root_router.get("/readyz", response_model=Ready, responses=problems())
def readyz(app_state: State) -> Any:
    """Whether the service can take work: database and store answer, the home is its own and can be written."""
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
    """Readiness, queue, workers, tasks, grid points and latencies, in the text format of Prometheus."""
    return Response(app_state.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})
