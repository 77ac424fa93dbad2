"""Logs and measures every request, and handles unexpected errors."""

from __future__ import annotations

import logging
import secrets
import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from valleyscope.app.api.metrics import Metrics
from valleyscope.app.api.problems import Problem
from valleyscope.app.api.share_access import without_token

log = logging.getLogger("valleyscope.app.access")

PREFIX = "/api"
_OTHER = "other"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestLog:
    """Logs and measures requests. An unexpected error becomes a problem with the id of its log entry."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 0

        async def send_measured(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._record(scope, status, time.perf_counter() - started)
            await send(message)

        try:
            await self.app(scope, receive, send_measured)
        except Exception:
            error_id = secrets.token_hex(8)
            log.exception(
                "unexpected error",
                extra={"error": error_id, "method": scope["method"], "path": without_token(scope["path"])},
            )
            if status:
                raise  # the response has started
            problem = Problem(500, "unexpected", f"unexpected error; see id {error_id} in the log", id=error_id)
            await problem.response(scope["path"])(scope, receive, send_measured)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else _OTHER
        self._metrics.requests.labels(method, _route(scope), str(status)).observe(seconds)
        # Without the query and the token of a link, which are secrets.
        path = without_token(scope["path"])
        log.info(
            "%s %s %d",
            scope["method"],
            path,
            status,
            extra={
                "client": scope["client"][0] if scope.get("client") else None,
                "method": scope["method"],
                "path": path,
                "status": status,
                "seconds": round(seconds, 4),
            },
        )


def _route(scope: Scope) -> str:
    """The path template of the route, so that metrics have no series per experiment."""
    path = getattr(scope.get("route"), "path", None)
    if not isinstance(path, str):
        return _OTHER
    return path if path.startswith(PREFIX) or not scope["path"].startswith(PREFIX) else PREFIX + path
