"""One task as it is sent to the process that computes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from valleyscope.app.experiments.plan import Task
from valleyscope.app.experiments.spec import Spec


@dataclass(frozen=True)
class Assignment:
    """A task of an experiment in its directory; `checkpoints` are the files of minima that are not trained."""

    task: Task
    spec: Spec
    directory: Path
    data_root: Path | None
    checkpoints: Mapping[str, Path]
