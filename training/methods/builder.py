"""The method of a run, by its name."""

from __future__ import annotations

from valleyscope.training.methods.altsdp import Thresholding
from valleyscope.training.methods.group_lasso import GroupLassoMethod, GroupLassoRDAMethod
from valleyscope.training.methods.method import Method, RunContext
from valleyscope.training.methods.one_shot import OneShot
from valleyscope.training.methods.soft_pruning import GeometricMedian, SoftFilterPruning

_CLASSES: dict[str, type[Method]] = {
    "altsdp": Thresholding,
    "grda": Thresholding,
    "group-lasso": GroupLassoMethod,
    "group-lasso-rda": GroupLassoRDAMethod,
    "sfp": SoftFilterPruning,
    "fpgm": GeometricMedian,
    "one-shot": OneShot,
}


def build_method(context: RunContext) -> Method:
    """The method of a run; plain SGD if its settings name none."""
    name = context.settings.method_name
    return Method(context) if name is None else _CLASSES[name](context)
