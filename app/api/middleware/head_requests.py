"""HEAD for every GET route, and the Allow header of a path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import anyio
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")


class HeadMiddleware:
    """Answers HEAD like GET, without the body.

    The route is cancelled at the first bytes of its body, because an event stream does not end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        get_scope = {**scope, "method": "GET"}
        with anyio.CancelScope() as cancel_scope:

            async def send_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    scope["route"] = get_scope.get("route")  # for the request log
                    await send(message)
                elif message["type"] == "http.response.body" and not cancel_scope.cancel_called:
                    await send({"type": "http.response.body"})
                    cancel_scope.cancel()

            await self.app(get_scope, receive, send_head)


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """All methods of a path, for Allow. The router itself names only those of the first matching route."""
    known = list(routes)
    found = [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in known)
    ]
    return ", ".join(sorted([*found, "HEAD"] if "GET" in found else found))
