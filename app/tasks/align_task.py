"""The task that aligns one end of a straight line to the other, and measures the line between them."""

from __future__ import annotations

import json
from typing import cast

from valleyscope.app.tasks.context import TaskContext
from valleyscope.landscape.alignment.align import Aligner, Method, NotAligned
from valleyscope.landscape.geometry.curves import Curve, line
from valleyscope.landscape.geometry.vectors import flatten
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.training.checkpoints import load_checkpoint


def aligned_line(context: TaskContext, name: str, start: str, end: str) -> tuple[Curve | None, str]:
    """The line from a minimum to another with its hidden units in the order of the first, and what was done.

    A network without known symmetries is not a failure: there is no line then, and the text says why.
    """
    networks = [context.network() for _ in (start, end)]
    for network, minimum in zip(networks, (start, end), strict=True):
        load_checkpoint(context.minimum_file(minimum), network)
    model, method = context.network(), cast("Method", context.spec.align)
    try:
        data = (context.data.x_train.cpu(), context.data.y_train.cpu())
        found = Aligner(model, networks[0], data, method=method).align(networks[1], end)
    except NotAligned as error:
        note = f"not aligned: {error}"
        path = None
    else:
        note = found.text(start, end)
        path = line(flatten(networks[0]), flatten(model, found.state))
    with write_atomically(context.alignment_file(name)) as file:
        file.write(json.dumps({"note": note, "aligned": path is not None}).encode())
    return path, note
