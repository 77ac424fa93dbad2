"""The method of a run, by its name."""

from __future__ import annotations

from valleyscope.training.methods.altsdp import Thresholding
from valleyscope.training.methods.channel_lasso import ChannelPruning
from valleyscope.training.methods.correlation import CorrelationPruning
from valleyscope.training.methods.deephoyer import DeepHoyer
from valleyscope.training.methods.exact_sdp import ExactSDP
from valleyscope.training.methods.group_lasso import GroupLassoMethod, GroupLassoRDAMethod
from valleyscope.training.methods.hesso import Hesso
from valleyscope.training.methods.least_squares import OneShotLeastSquares
from valleyscope.training.methods.method import Method, RunContext
from valleyscope.training.methods.narrower import Narrower
from valleyscope.training.methods.one_shot import OneShot
from valleyscope.training.methods.rmda import RMDAMethod
from valleyscope.training.methods.slimming import Polarization, Slimming
from valleyscope.training.methods.soft_pruning import GeometricMedian, SoftFilterPruning

_CLASSES: dict[str, type[Method]] = {
    "altsdp": Thresholding,
    "grda": Thresholding,
    "group-lasso": GroupLassoMethod,
    "group-lasso-rda": GroupLassoRDAMethod,
    "rmda": RMDAMethod,
    "ns": Slimming,
    "pr": Polarization,
    "sfp": SoftFilterPruning,
    "fpgm": GeometricMedian,
    "deephoyer": DeepHoyer,
    "hesso": Hesso,
    "ucs": Narrower,
    "one-shot": OneShot,
    "ls": OneShotLeastSquares,
    "cp": ChannelPruning,
    "cop": CorrelationPruning,
    "sdp": ExactSDP,
}


def build_method(context: RunContext) -> Method:
    """The method of a run; plain SGD if its settings name none."""
    name = context.settings.method_name
    return Method(context) if name is None else _CLASSES[name](context)
