"""Time limits for a store that speaks S3: a server that is there and never answers must not hold anyone up.

The library limits how long it waits for a connection and for an answer, but not for a server that does not take what
is sent to it, or never says that it may be sent (`Expect: 100-continue`). So every request as a whole has a limit.
"""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, Final

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 10
REQUEST_SECONDS: Final = 15.0
"""From the start of a request to the first bytes of its answer, and more for what is sent with it."""
_SLOWEST: Final = 512 * 1024  # bytes a second
ATTEMPTS: Final = 2


def configuration() -> dict[str, Any]:
    """What botocore is told, by way of s3fs. Each request is made once: s3fs repeats those that fail."""
    from aiobotocore.config import AioConfig

    found: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"total_max_attempts": 1},
    }
    if "http_session_cls" in inspect.signature(AioConfig.__init__).parameters:
        found["http_session_cls"] = _timeout_session()
    return found


def limit(request: Any) -> float:
    """The seconds that a request may take until its answer begins."""
    sent = request.headers.get("Content-Length") or request.headers.get("X-Amz-Decoded-Content-Length") or 0
    return REQUEST_SECONDS + int(sent) / _SLOWEST


def _timeout_session() -> type[Any]:
    from aiobotocore.httpsession import AIOHTTPSession
    from botocore.exceptions import ReadTimeoutError

    class PunctualSession(AIOHTTPSession):  # type: ignore[misc]
        async def send(self, request: Any) -> Any:
            try:
                return await asyncio.wait_for(super().send(request), limit(request))
            except TimeoutError as error:
                raise ReadTimeoutError(endpoint_url=request.url, error=error) from None

    return PunctualSession
