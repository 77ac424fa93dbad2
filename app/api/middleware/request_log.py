"""Watches every request: how long it took, what came of it, and whatever nobody else caught."""

from __future__ import annotations

import logging
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from valleyscope.app.api.metrics import Metrics
from valleyscope.app.api.problems import Problem

log = logging.getLogger("valleyscope.app.access")

PREFIX = "/api"
_OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestLog:
    """Logs requests, measures them, and turns unexpected errors into a problem with an id that is in the log."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._note(scope, status, time.perf_counter() - started)
            await send(message)

        try:
            await self.app(scope, receive, send_observed)
        except Exception:
            number = secrets.token_hex(8)
            log.exception(
                "unexpected error",
                extra={"error": number, "method": scope["method"], "path": scope["path"]},
            )
            if status:
                raise  # too late for another answer
            problem = Problem(
                500, "unexpected", f"something unexpected happened; its id in the log is {number}", id=number
            )
            await problem.response(scope["path"])(scope, receive, send_observed)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        self._metrics.requests.labels(method, _route(scope), str(status)).observe(seconds)
        # The path alone: a query may hold what nobody should find in a log.
        log.info(
            "%s %s %d",
            scope["method"],
            scope["path"],
            status,
            extra={
                "client": scope["client"][0] if scope.get("client") else None,
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "seconds": round(seconds, 4),
            },
        )


def _route(scope: Scope) -> str:
    """The path of the route with its parameters left open: a metric must not have a series for each experiment."""
    path = getattr(scope.get("route"), "path", None)
    if not isinstance(path, str):
        return _OTHER
    return path if path.startswith(PREFIX) or not scope["path"].startswith(PREFIX) else PREFIX + path
