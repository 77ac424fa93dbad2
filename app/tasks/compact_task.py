"""The task that removes the zero groups of a minimum, writes the compact network, and times both."""

from __future__ import annotations

import json
import logging
import os
from typing import Any

from valleyscope.app.experiments.experiment_writer import compact_files
from valleyscope.app.experiments.task_results import CompactedMinimum
from valleyscope.app.tasks.context import TaskContext
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.training.checkpoints import load_checkpoint
from valleyscope.training.compaction import Compact, NotCompactable, compact, export_onnx, save_compact
from valleyscope.training.compaction.exports import onnx_is_installed
from valleyscope.training.compaction.latency import BATCHES, latencies

log = logging.getLogger(__name__)

ONNX_SWITCH = "VALLEY_ONNX"
"""`off` in the environment of a worker: no ONNX files, also where the extra is installed."""


def make_compact(context: TaskContext, name: str) -> CompactedMinimum:
    """Remove the zero groups of a minimum; a network that is refused is reported as such, it is not a failure.

    Latencies are wall times: they are measured once, and read from the task's file when it runs again.
    """
    path = context.compact_file(name)
    if not path.is_file():
        report = _report(context, name)
        with write_atomically(path) as file:
            file.write(json.dumps(report).encode())
    return CompactedMinimum(json.loads(path.read_text(encoding="utf-8")))


def _report(context: TaskContext, name: str) -> dict[str, Any]:
    model = context.network()
    checkpoint = load_checkpoint(context.minimum_file(name), model)
    try:
        found = compact(model, context.data.x_train[:1])
        if not found.report.is_smaller:
            return {"smaller": False}
        weights, _ = compact_files(name)
        save_compact(context.directory / weights, found, spec=checkpoint.spec)
    except NotCompactable as error:
        return {"smaller": False, "refused": str(error)}
    files = [weights, *_write_onnx(context, name, found)]
    timed = {}
    for batch in BATCHES:
        before, after = latencies([model, found.model], found.example, batch, seconds=0.3, least=3)
        timed[str(batch)] = {"before": before.to_json(), "after": after.to_json()}
    return {"smaller": True, **found.report.to_json(), "latency": timed, "files": files}


def _write_onnx(context: TaskContext, name: str, found: Compact) -> list[str]:
    _, file = compact_files(name)
    if not onnx_is_installed() or os.environ.get(ONNX_SWITCH) == "off":
        return []
    try:
        export_onnx(context.directory / file, found)
    except Exception as error:  # an operation that the exporter does not know; the other file is there
        log.warning("%s was not written: %s", file, error)
        return []
    return [file]
