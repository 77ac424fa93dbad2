"""Checks of Host, Origin, API key and body size, and security headers.

Plain ASGI middleware, so that it also covers static files and unknown paths.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from valleyscope.app.api.problems import Problem
from valleyscope.app.api.share_access import SHARED_VIEW, TOKEN_HEADER, admit
from valleyscope.app.settings import Settings
from valleyscope.app.storage.share_table import ShareTable

log = logging.getLogger(__name__)

KEY_HEADER: Final = "X-API-Key"
PROTECTED: Final = ("/api", "/metrics")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WINDOW_SECONDS = 60.0
_MAX_ADDRESSES = 10_000

_NO_FRAMES = "frame-ancestors 'none'"
CONTENT_POLICY: Final = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'self'",
        _NO_FRAMES,
    )
)
HEADERS: Final = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Adds the security headers that a route has not set itself."""

    def __init__(self, app: ASGIApp, embed: Sequence[str] = ()) -> None:
        self.app = app
        self._shared_view = _embeddable(embed) if embed else HEADERS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                shared = scope["path"].startswith(f"{SHARED_VIEW}/")
                for name, value in (self._shared_view if shared else HEADERS).items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api"):
                    headers.setdefault("Cache-Control", "no-cache, private")
            await send(message)

        await self.app(scope, receive, send_with_headers)


def _embeddable(origins: Sequence[str]) -> dict[str, str]:
    """The headers of a view that pages of these origins may show in an iframe."""
    allowed = CONTENT_POLICY.replace(_NO_FRAMES, f"frame-ancestors {' '.join(origins)}")
    headers = {name: value for name, value in HEADERS.items() if name != "X-Frame-Options"}  # it knows no origins
    return headers | {"Content-Security-Policy": allowed}


class AccessControl:
    """Rejects a wrong Host, a foreign Origin, and a missing or wrong key; the token of a link replaces the key."""

    def __init__(self, app: ASGIApp, settings: Settings, shares: ShareTable) -> None:
        self.app = app
        self._shares = shares
        self._names = _own_names(settings)
        self._proxied = frozenset(name.lower() for name in settings.hosts)
        self._key = None if settings.api_key is None else settings.api_key.get_secret_value().encode()
        self._failures = FailedLogins(settings.key_failures)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                await self._check(scope)
            except Problem as problem:
                await problem.response(scope["path"])(scope, receive, send)
                return
        elif scope["type"] == "websocket":
            return
        await self.app(scope, receive, send)

    async def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self._names is not None and _name(f"//{host}") not in self._names:
            detail = f"host {host[:200]!r} is not allowed: use the address of the server, or add it to VALLEY_HOSTS"
            raise Problem(421, "wrong-host", detail)
        if scope["method"] not in _SAFE_METHODS:
            self._check_origin(headers, host)
        if not scope["path"].startswith(PROTECTED):
            return
        if (token := headers.get(TOKEN_HEADER)) is not None:
            await run_in_threadpool(admit, self._shares, token, scope)
        elif self._key is not None:
            self._check_key(headers, scope)

    def _check_origin(self, headers: Headers, host: str) -> None:
        """Prevent pages of other sites from changing anything through the browser of a visitor."""
        origin = headers.get("origin")
        own = origin is None or origin.partition("//")[2] == host or _name(origin) in self._proxied
        if not own or headers.get("sec-fetch-site") in ("cross-site", "same-site"):
            message = "requests that change data must come from the pages of this server"
            raise Problem(403, "foreign-origin", message)

    def _check_key(self, headers: Headers, scope: Scope) -> None:
        """The right key always works: another client at the same address may have sent wrong ones."""
        address = scope["client"][0] if scope.get("client") else "unknown"
        given = headers.get(KEY_HEADER)
        assert self._key is not None
        if given is not None and hmac.compare_digest(given.encode("latin-1"), self._key):
            return
        wait = self._failures.wait(address)
        if given is not None and wait > 0:
            detail = f"too many wrong keys from this address: wait {wait:.0f} s"
            raise Problem(429, "too-many-keys", detail, headers={"Retry-After": str(int(wait) + 1)})
        if given is not None:
            self._failures.add(address)
            log.warning("wrong API key", extra={"client": address})
        raise Problem(
            401,
            "key-required" if given is None else "wrong-key",
            f"send the API key of the server in the header {KEY_HEADER}",
            headers={"WWW-Authenticate": f'ApiKey header="{KEY_HEADER}"'},
        )


class FailedLogins:
    """Counts wrong keys per address in the last minute."""

    def __init__(self, allowed: int) -> None:
        self._allowed = allowed
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def add(self, address: str) -> None:
        times = self._times.setdefault(address, deque(maxlen=self._allowed))
        times.append(time.monotonic())
        self._times.move_to_end(address)
        while len(self._times) > _MAX_ADDRESSES:
            self._times.popitem(last=False)

    def wait(self, address: str) -> float:
        """Seconds until the address may try again."""
        times = self._times.get(address)
        if times is None or len(times) < self._allowed:
            return 0.0
        return max(0.0, times[0] + _WINDOW_SECONDS - time.monotonic())


class BodyLimit:
    """Rejects bodies above a limit, by Content-Length or while they arrive; uploads have their own limit."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self._limit = settings.max_body
        # A multipart body is slightly longer than its files.
        self._upload_limits = {
            "/api/checkpoints": settings.max_upload + settings.max_body,
            "/api/landscapes": settings.max_landscape + settings.max_body,
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        limit = self._upload_limits.get(scope["path"].rstrip("/"), self._limit)
        problem = Problem(413, "too-large", f"the body is too large: at most {limit} bytes are allowed", limit=limit)
        announced = Headers(scope=scope).get("content-length", "0")
        if not announced.isdecimal() or int(announced) > limit:
            await problem.response(scope["path"])(scope, receive, send)
            return
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > limit:
                    raise problem
            return message

        await self.app(scope, receive_limited, send)


def _own_names(settings: Settings) -> frozenset[str] | None:
    """Allowed host names; None for any.

    This stops DNS rebinding, where a page maps its own name to 127.0.0.1. Beyond loopback the key protects.
    """
    if not settings.loopback and not settings.hosts:
        return None
    names: Iterable[str] = (*_LOOPBACK, settings.host, *settings.hosts)
    return frozenset(name.strip("[]").lower() for name in names)


def _name(address: str) -> str:
    try:
        return (urlsplit(address).hostname or "").lower()
    except ValueError:
        return ""
