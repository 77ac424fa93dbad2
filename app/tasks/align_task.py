"""The task that aligns one end of a straight line to the other, before the line between them is measured."""

from __future__ import annotations

import json

from valleyscope.app.tasks.aligned_minimum import aligned_minimum
from valleyscope.app.tasks.context import TaskContext
from valleyscope.landscape.alignment.align import NotAligned
from valleyscope.landscape.geometry.curves import Curve, line
from valleyscope.landscape.storage.atomic_write import write_atomically


def aligned_line(context: TaskContext, name: str, start: str, end: str) -> tuple[Curve | None, str]:
    """The line from a minimum to another with its hidden units in the order of the first, and what was done.

    A network without known symmetries is not a failure: there is no line then, and the text says why.
    """
    path = None
    try:
        vector, found = aligned_minimum(context, end, start)
    except NotAligned as error:
        note = f"not aligned: {error}"
    else:
        note = found.text(start, end)
        path = line(context.minimum(start), vector)
    with write_atomically(context.alignment_file(name)) as file:
        file.write(json.dumps({"note": note, "aligned": path is not None}).encode())
    return path, note
