"""Structured logs: one JSON object a line, with the ids of experiment, task, worker and request where there are any."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from app.settings import Settings

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


def start_logging(settings: Settings) -> None:
    """Send the logs of this process to standard error, in the form that the settings ask for."""
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S")
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else text)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.log_level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "dbos", "alembic"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for quiet in ("uvicorn", "dbos", "alembic"):
        logging.getLogger(quiet).setLevel(max(logging.WARNING, root.level))
