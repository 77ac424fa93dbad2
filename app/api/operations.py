"""Workers, queue, health, readiness and metrics: what an operator asks."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from app.api.documentation import problems
from app.api.metrics import CONTENT_TYPE
from app.api.problems import Problem
from app.api.schemas import Health, Queue, QueuedTask, Ready, Worker, Workers
from app.api.wiring import Wired

router = APIRouter(tags=["operations"])
root_router = APIRouter(tags=["operations"])


@router.get("/workers", response_model=Workers, responses=problems())
def workers(wiring: Wired) -> Any:
    """Who is alive, on which device, doing what, since when."""
    return Workers(items=[Worker.model_validate(row) for row in wiring.service.workers()])


@router.get("/queue", response_model=Queue, responses=problems())
def queue(wiring: Wired) -> Any:
    """Tasks that wait, in the order in which workers take them."""
    return Queue(items=[QueuedTask.model_validate(row) for row in wiring.service.queue()])


@root_router.get("/healthz", response_model=Health, responses=problems())
async def healthz() -> Any:
    """Whether the process answers."""
    return Health(status="ok")


@root_router.get("/readyz", response_model=Ready, responses=problems())
def readyz(wiring: Wired) -> Any:
    """Whether the service can take work: database and store answer, the home is its own and can be written."""
    checks = wiring.readiness.checks()
    failed = {name: found for name, found in checks.items() if found != "ok"}
    if failed:
        detail = "; ".join(f"{name}: {found}" for name, found in failed.items())
        raise Problem(503, "not-ready", detail, checks=checks)
    return Ready(status="ready", workers=len(wiring.service.workers()), checks=checks)


@root_router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "For Prometheus", "content": {"text/plain": {"schema": {"type": "string"}}}},
        **problems(),
    },
)
def metrics(wiring: Wired) -> Response:
    """Readiness, queue, workers, tasks, grid points and latencies, in the text format of Prometheus."""
    return Response(wiring.metrics.exposition(), headers={"Content-Type": CONTENT_TYPE})
