"""Structured logs: one JSON object a line, with the ids of experiment, task, worker and request where there are any."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

_CALM_SECONDS = 10.0
_REMEMBERED = 1000
_NUMBER = re.compile(r"\d+")

FIELDS = ("experiment", "task", "worker", "request", "client", "method", "path", "status", "seconds", "error")


class JsonFormatter(logging.Formatter):
    """A record as JSON; fields given by `extra` are part of it."""

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
    """Lets the same warning through once in a while: whoever waits for a disk or a database says it at each try."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, ...], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno != logging.WARNING:
            return True
        about = [str(getattr(record, name, "")) for name in ("experiment", "task", "worker", "path")]
        key = (record.name, _NUMBER.sub("", record.getMessage()), *about)
        now = time.monotonic()
        if now - self._said.get(key, -math.inf) < _CALM_SECONDS:
            return False
        if len(self._said) >= _REMEMBERED:
            self._said.clear()
        self._said[key] = now
        return True


class _Wishes(Protocol):
    @property
    def log_level(self) -> str: ...

    @property
    def log_format(self) -> str: ...


@dataclass(frozen=True)
class Style:
    """How a process logs, for its children to do the same."""

    log_level: str
    log_format: str


style: Style | None = None
"""How this process logs; None until it was told."""


def start_logging(wishes: _Wishes) -> None:
    """Send the logs of this process, and Python's warnings, to standard error in the form that is asked for."""
    global style
    style = Style(wishes.log_level, wishes.log_format)
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
    for quiet in ("uvicorn", "dbos", "alembic"):
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
    # What these say in detail has signed headers and session tokens of the store in it.
    for signing in ("botocore", "aiobotocore", "boto3", "s3fs", "fsspec", "aiohttp", "urllib3", "asyncio"):
        logging.getLogger(signing).setLevel(max(logging.WARNING, root.level))
