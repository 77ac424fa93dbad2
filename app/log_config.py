"""Structured logs: one JSON object per line, with the ids of experiment, task, worker and request where known."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from valleyscope.app.settings import Settings

_REPEAT_SECONDS = 10.0
_MAX_REMEMBERED = 1000
_NUMBER = re.compile(r"\d+")

FIELDS = ("experiment", "task", "worker", "request", "client", "method", "path", "status", "seconds", "error")


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON, including the fields given by `extra`."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **{name: value for name in FIELDS if (value := getattr(record, name, None)) is not None},
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class RepeatFilter(logging.Filter):
    """Drops repeats of a warning for some seconds: a retry loop logs the same one at each attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._last_logged: dict[tuple[str, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        context = [str(getattr(record, name, "")) for name in ("experiment", "task", "worker", "path")]
        key = (record.name, _NUMBER.sub("", record.getMessage()), *context)
        now = time.monotonic()
        if now - self._last_logged.get(key, -math.inf) < _REPEAT_SECONDS:
            return False
        if len(self._last_logged) >= _MAX_REMEMBERED:
            self._last_logged.clear()
        self._last_logged[key] = now
        return True


@dataclass(frozen=True)
class Style:
    """How a process logs; passed to child processes."""

    log_level: str
    log_format: str


style: Style | None = None
"""How this process logs; None before `start_logging`."""


def start_logging(settings: Settings | Style) -> None:
    """Send the logs of this process, and Python's warnings, to standard error."""
    global style
    style = Style(settings.log_level, settings.log_format)
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if style.log_format == "json" else text)
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(style.log_level)
    logging.captureWarnings(True)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "dbos", "alembic"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    # The debug logs of these contain signed headers and session tokens of the store.
    store = ("botocore", "aiobotocore", "boto3", "s3fs", "fsspec", "aiohttp", "urllib3", "asyncio")
    for name in ("uvicorn", "dbos", "alembic", *store):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
