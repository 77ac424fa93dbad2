"""Computes chosen networks of a comparison of pruning methods, one after the other, as far as `table.py` reads them.

    python docs/pruning/networks.py docs/pruning/mnist-lenet.yaml OUT altsdp_60_s2 sfp_60
    python docs/pruning/table.py OUT --csv docs/pruning/mnist-lenet.csv

Each is trained with the tasks of `valley run`, after the networks that it needs and the SGD network of its seed; then
its line to that network is measured, and its compact form. Stopped and called again, it goes on where it was.
`valley run SPEC --out OUT` computes the rest.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from valleyscope.app.experiments.experiment_writer import ExperimentWriter
from valleyscope.app.experiments.plan import Kind, Task
from valleyscope.app.experiments.spec import read_spec
from valleyscope.app.worker.local_runner import Event, LocalRunner
from valleyscope.landscape.storage.records import line_name


def with_needs(tasks: dict[str, Task], wanted: list[str]) -> tuple[Task, ...]:
    """The tasks wanted, as far as the plan has them, after all that they need."""
    found: dict[str, Task] = {}
    for id in wanted:
        if id in tasks:
            found |= {task.id: task for task in with_needs(tasks, list(tasks[id].needs))}
            found[id] = tasks[id]
    return tuple(found.values())


def show(event: Event) -> None:
    if event.what != "advanced":
        print(event.what, event.task.id, event.details.get("reason", ""), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spec", type=Path)
    parser.add_argument("directory", type=Path, help="a new folder, or one of an interrupted run")
    parser.add_argument("network", nargs="+", help="as `sfp_60`, or `altsdp_60_s2` for the second seed")
    options = parser.parse_args()
    spec = read_spec(options.spec)
    if unknown := [name for name in options.network if name not in spec.minima]:
        parser.error(f"network {unknown[0]!r} is not in the spec: use {', '.join(spec.minima)}")
    data = Path(os.environ["VALLEY_DATA"]) if os.environ.get("VALLEY_DATA") else None
    experiment = ExperimentWriter(spec, options.directory)
    try:
        tasks = {task.id: task for task in experiment.tasks}
        for name in options.network:
            lines = [f"{Kind.LINE}:{line_name(*pair)}" for pair in spec.lines if name in pair and name[:3] != "sgd"]
            experiment.tasks = with_needs(tasks, [f"{Kind.TRAIN}:{name}", *lines, f"{Kind.COMPACT}:{name}"])
            LocalRunner(experiment, workers=1, data_root=data, watch=show).run()
    finally:
        experiment.close()


if __name__ == "__main__":
    main()
