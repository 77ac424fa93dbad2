"""What HTTP asks of every path beyond its routes: HEAD wherever there is GET, and Allow with all methods there are."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import anyio
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")


class HeadMiddleware:
    """Answers HEAD as GET is answered, without the body.

    What goes on making a body is cancelled at its first bytes, since a stream of events has no end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self.app(scope, receive, send)
            return
        got = {**scope, "method": "GET"}
        with anyio.CancelScope() as answering:

            async def send_head(message: Message) -> None:
                if message["type"] == "http.response.start":
                    scope["route"] = got.get("route")  # for whoever observes requests
                    await send(message)
                elif message["type"] == "http.response.body" and not answering.cancel_called:
                    await send({"type": "http.response.body"})
                    answering.cancel()

            await self.app(got, receive, send_head)


def allowed_methods(routes: Iterable[BaseRoute], scope: Scope) -> str:
    """The methods of a path, for Allow. A router names only those of the first route that has the path."""
    known = list(routes)
    found = [
        method
        for method in _METHODS
        if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in known)
    ]
    return ", ".join(sorted([*found, "HEAD"] if "GET" in found else found))
