"""Training: data sets, models, partitions, optimisers, the training loop and checkpoints.

Names are imported when they are first used, so processes that only need the settings never load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from valleyscope.training.altsdp import AltSDP as AltSDP
    from valleyscope.training.checkpoints import load_checkpoint as load_checkpoint
    from valleyscope.training.checkpoints import save_checkpoint as save_checkpoint
    from valleyscope.training.compaction import Compact as Compact
    from valleyscope.training.compaction import NotCompactable as NotCompactable
    from valleyscope.training.compaction import compact as compact
    from valleyscope.training.compaction import export_onnx as export_onnx
    from valleyscope.training.compaction import export_program as export_program
    from valleyscope.training.compaction import load_compact as load_compact
    from valleyscope.training.compaction import save_compact as save_compact
    from valleyscope.training.datasets import Dataset as Dataset
    from valleyscope.training.datasets import load_dataset as load_dataset
    from valleyscope.training.loop import train as train
    from valleyscope.training.models import build_model as build_model
    from valleyscope.training.outcomes import AllZero as AllZero
    from valleyscope.training.outcomes import Cancelled as Cancelled
    from valleyscope.training.outcomes import Diverged as Diverged
    from valleyscope.training.outcomes import Trained as Trained
    from valleyscope.training.parameter_groups import partition as partition
    from valleyscope.training.pruning_forecast import forecast_loop as forecast_loop
    from valleyscope.training.sdp import sdp_step as sdp_step
    from valleyscope.training.settings import Training as Training
    from valleyscope.training.thresholds import accumulated_threshold as accumulated_threshold
    from valleyscope.training.thresholds import c_for_target as c_for_target
    from valleyscope.training.zero_groups import sparsity as sparsity

_MODULES = {
    "AllZero": "outcomes",
    "AltSDP": "altsdp",
    "Cancelled": "outcomes",
    "Compact": "compaction",
    "Dataset": "datasets",
    "Diverged": "outcomes",
    "NotCompactable": "compaction",
    "Trained": "outcomes",
    "Training": "settings",
    "accumulated_threshold": "thresholds",
    "build_model": "models",
    "c_for_target": "thresholds",
    "compact": "compaction",
    "export_onnx": "compaction",
    "export_program": "compaction",
    "forecast_loop": "pruning_forecast",
    "load_checkpoint": "checkpoints",
    "load_compact": "compaction",
    "load_dataset": "datasets",
    "partition": "parameter_groups",
    "save_checkpoint": "checkpoints",
    "save_compact": "compaction",
    "sdp_step": "sdp",
    "sparsity": "zero_groups",
    "train": "loop",
}

__all__ = sorted(_MODULES)


if not TYPE_CHECKING:  # type checkers know the names above, and find those that do not exist

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'valleyscope.training' has no attribute {name!r}")
        return getattr(import_module(f"valleyscope.training.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
