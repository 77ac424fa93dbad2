"""The task that evaluates a set of minima as one: by the mean of their weights, and of their predictions."""

from __future__ import annotations

from collections.abc import Callable

from valleyscope.app.experiments.task_results import MeasuredEnsemble
from valleyscope.app.tasks.context import TaskContext
from valleyscope.landscape.analysis.ensembles import ensemble


def measure_ensemble(context: TaskContext, name: str, cancelled: Callable[[], bool]) -> MeasuredEnsemble:
    members = (context.spec.ensembles or {})[name]
    network, weights = context.network(), {member: context.minimum(member) for member in members}
    found = context.evaluate(lambda evaluator: ensemble(network, weights, evaluator=evaluator, cancelled=cancelled))
    return MeasuredEnsemble(found.to_record(name))
