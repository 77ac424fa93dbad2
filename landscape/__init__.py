"""Loss landscapes: vectors, curves, planes, fast evaluation, profiles, the verdict, HDF5 files and figures.

Names are imported when they are first used, so processes that only read results never load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from valleyscope.landscape import figures as figures
    from valleyscope.landscape.analysis.barriers import barrier as barrier
    from valleyscope.landscape.analysis.ensembles import ensemble as ensemble
    from valleyscope.landscape.analysis.pair_matrix import pair_matrix as pair_matrix
    from valleyscope.landscape.analysis.pair_verdict import pair_verdict as pair_verdict
    from valleyscope.landscape.analysis.profiles import Profile as Profile
    from valleyscope.landscape.analysis.profiles import along as along
    from valleyscope.landscape.analysis.profiles import line as line
    from valleyscope.landscape.analysis.sharpness import sharpness as sharpness
    from valleyscope.landscape.analysis.surfaces import Surface as Surface
    from valleyscope.landscape.analysis.surfaces import surface as surface
    from valleyscope.landscape.analysis.verdict import verdict as verdict
    from valleyscope.landscape.cancellation import Cancelled as Cancelled
    from valleyscope.landscape.comparison import compare as compare
    from valleyscope.landscape.evaluation.evaluator import Evaluator as Evaluator
    from valleyscope.landscape.evaluation.evaluator import evaluate as evaluate
    from valleyscope.landscape.fitting.fit_curve import fit_curve as fit_curve
    from valleyscope.landscape.geometry.curves import Bezier as Bezier
    from valleyscope.landscape.geometry.curves import PolyChain as PolyChain
    from valleyscope.landscape.geometry.planes import Plane as Plane
    from valleyscope.landscape.geometry.vectors import flatten as flatten
    from valleyscope.landscape.geometry.vectors import unflatten as unflatten
    from valleyscope.landscape.importers import import_file as import_file
    from valleyscope.landscape.recorder import Recorder as Recorder
    from valleyscope.landscape.recorder import trajectories as trajectories
    from valleyscope.landscape.report import write_report as write_report
    from valleyscope.landscape.storage.landscape_file import Landscape as Landscape
    from valleyscope.landscape.training_callbacks import lightning_callback as lightning_callback
    from valleyscope.landscape.training_callbacks import transformers_callback as transformers_callback

_MODULES = {
    "Bezier": "geometry.curves",
    "Cancelled": "cancellation",
    "Evaluator": "evaluation.evaluator",
    "Landscape": "storage.landscape_file",
    "Plane": "geometry.planes",
    "PolyChain": "geometry.curves",
    "Profile": "analysis.profiles",
    "Recorder": "recorder",
    "Surface": "analysis.surfaces",
    "along": "analysis.profiles",
    "barrier": "analysis.barriers",
    "compare": "comparison",
    "ensemble": "analysis.ensembles",
    "evaluate": "evaluation.evaluator",
    "figures": "",
    "fit_curve": "fitting.fit_curve",
    "flatten": "geometry.vectors",
    "import_file": "importers",
    "lightning_callback": "training_callbacks",
    "line": "analysis.profiles",
    "pair_matrix": "analysis.pair_matrix",
    "pair_verdict": "analysis.pair_verdict",
    "sharpness": "analysis.sharpness",
    "surface": "analysis.surfaces",
    "trajectories": "recorder",
    "transformers_callback": "training_callbacks",
    "unflatten": "geometry.vectors",
    "verdict": "analysis.verdict",
    "write_report": "report",
}

__all__ = sorted(_MODULES)


if not TYPE_CHECKING:  # type checkers know the names above, and find those that do not exist

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module 'valleyscope.landscape' has no attribute {name!r}")
        if not _MODULES[name]:
            return import_module(f"valleyscope.landscape.{name}")
        return getattr(import_module(f"valleyscope.landscape.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
