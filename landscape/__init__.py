"""Looks at weights: vectors, curves, planes, fast evaluation, profiles, the verdict, the HDF5 store and figures.

Names are imported when they are first used, so that a process which only reads results does not pay for torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from landscape.barriers import barrier as barrier
    from landscape.cancellation import Cancelled as Cancelled
    from landscape.comparison import compare as compare
    from landscape.curves import Bezier as Bezier
    from landscape.curves import PolyChain as PolyChain
    from landscape.evaluation import Evaluator as Evaluator
    from landscape.evaluation import evaluate as evaluate
    from landscape.fitting import fit_curve as fit_curve
    from landscape.foreign import import_file as import_file
    from landscape.planes import Plane as Plane
    from landscape.profiles import along as along
    from landscape.profiles import line as line
    from landscape.report import write_report as write_report
    from landscape.store import Landscape as Landscape
    from landscape.surfaces import surface as surface
    from landscape.vectors import flatten as flatten
    from landscape.vectors import unflatten as unflatten
    from landscape.verdicts import verdict as verdict

_HOMES = {
    "Bezier": "curves",
    "Cancelled": "cancellation",
    "Evaluator": "evaluation",
    "Landscape": "store",
    "Plane": "planes",
    "PolyChain": "curves",
    "along": "profiles",
    "barrier": "barriers",
    "compare": "comparison",
    "evaluate": "evaluation",
    "fit_curve": "fitting",
    "flatten": "vectors",
    "import_file": "foreign",
    "line": "profiles",
    "surface": "surfaces",
    "unflatten": "vectors",
    "verdict": "verdicts",
    "write_report": "report",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'landscape' has no attribute {name!r}")
    return getattr(import_module(f"landscape.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
