"""Valleyscope: do these trained networks lie in one flat valley of the loss?

The public names of the library, and the packages `valleyscope.training`, `valleyscope.landscape` and
`valleyscope.app`. A name is imported when it is first used, so processes that only read results never load torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from valleyscope._torchvision import install

if TYPE_CHECKING:
    from valleyscope import app as app
    from valleyscope import landscape as landscape
    from valleyscope import training as training
    from valleyscope.app.experiments.gallery import gallery as gallery
    from valleyscope.landscape import Bezier as Bezier
    from valleyscope.landscape import Evaluator as Evaluator
    from valleyscope.landscape import Landscape as Landscape
    from valleyscope.landscape import Plane as Plane
    from valleyscope.landscape import PolyChain as PolyChain
    from valleyscope.landscape import Profile as Profile
    from valleyscope.landscape import Recorder as Recorder
    from valleyscope.landscape import Surface as Surface
    from valleyscope.landscape import along as along
    from valleyscope.landscape import barrier as barrier
    from valleyscope.landscape import compare as compare
    from valleyscope.landscape import ensemble as ensemble
    from valleyscope.landscape import evaluate as evaluate
    from valleyscope.landscape import figures as figures
    from valleyscope.landscape import fit_curve as fit_curve
    from valleyscope.landscape import flatten as flatten
    from valleyscope.landscape import import_file as import_file
    from valleyscope.landscape import lightning_callback as lightning_callback
    from valleyscope.landscape import line as line
    from valleyscope.landscape import pair_matrix as pair_matrix
    from valleyscope.landscape import pair_verdict as pair_verdict
    from valleyscope.landscape import sharpness as sharpness
    from valleyscope.landscape import surface as surface
    from valleyscope.landscape import trajectories as trajectories
    from valleyscope.landscape import transformers_callback as transformers_callback
    from valleyscope.landscape import unflatten as unflatten
    from valleyscope.landscape import verdict as verdict
    from valleyscope.landscape import write_report as write_report
    from valleyscope.landscape.alignment.align import Alignment as Alignment
    from valleyscope.landscape.alignment.align import NotAligned as NotAligned
    from valleyscope.landscape.alignment.align import align as align
    from valleyscope.landscape.curvature.flat_subspace import direction_factors as direction_factors
    from valleyscope.landscape.curvature.flat_subspace import factors_by_cut as factors_by_cut
    from valleyscope.landscape.curvature.flat_subspace import flat_subspace as flat_subspace
    from valleyscope.landscape.curvature.spectrum import curvature as curvature
    from valleyscope.landscape.curvature.theorem_trial import theorem_trial as theorem_trial
    from valleyscope.landscape.export import export as export
    from valleyscope.training import AltSDP as AltSDP
    from valleyscope.training import Compact as Compact
    from valleyscope.training import Dataset as Dataset
    from valleyscope.training import NotCompactable as NotCompactable
    from valleyscope.training import Training as Training
    from valleyscope.training import build_model as build_model
    from valleyscope.training import compact as compact
    from valleyscope.training import export_onnx as export_onnx
    from valleyscope.training import export_program as export_program
    from valleyscope.training import load_checkpoint as load_checkpoint
    from valleyscope.training import load_compact as load_compact
    from valleyscope.training import load_dataset as load_dataset
    from valleyscope.training import partition as partition
    from valleyscope.training import save_checkpoint as save_checkpoint
    from valleyscope.training import save_compact as save_compact
    from valleyscope.training import sparsity as sparsity
    from valleyscope.training import train as train
    from valleyscope.training.sdp import sdp as sdp

_TRAINING = (
    "AltSDP",
    "Compact",
    "Dataset",
    "NotCompactable",
    "Training",
    "build_model",
    "compact",
    "export_onnx",
    "export_program",
    "load_checkpoint",
    "load_compact",
    "load_dataset",
    "partition",
    "save_checkpoint",
    "save_compact",
    "sparsity",
    "train",
)
_LANDSCAPE = (
    "Bezier",
    "Evaluator",
    "Landscape",
    "Plane",
    "PolyChain",
    "Profile",
    "Recorder",
    "Surface",
    "along",
    "barrier",
    "compare",
    "ensemble",
    "evaluate",
    "export",
    "figures",
    "fit_curve",
    "flatten",
    "import_file",
    "lightning_callback",
    "line",
    "sharpness",
    "pair_matrix",
    "pair_verdict",
    "surface",
    "trajectories",
    "transformers_callback",
    "unflatten",
    "verdict",
    "write_report",
)
_APP = {"gallery": "valleyscope.app.experiments.gallery"}
# Names that a package or module of their room has, too.
_MODULES = {
    "Alignment": "landscape.alignment.align",
    "NotAligned": "landscape.alignment.align",
    "align": "landscape.alignment.align",
    "curvature": "landscape.curvature.spectrum",
    "direction_factors": "landscape.curvature.flat_subspace",
    "factors_by_cut": "landscape.curvature.flat_subspace",
    "flat_subspace": "landscape.curvature.flat_subspace",
    "sdp": "training.sdp",
    "theorem_trial": "landscape.curvature.theorem_trial",
}
_ROOMS = ("app", "landscape", "training")

__all__ = sorted((*_TRAINING, *_LANDSCAPE, *_APP, *_MODULES))

install()


if not TYPE_CHECKING:  # type checkers know the names above, and find those that do not exist

    def __getattr__(name: str) -> Any:
        if name in _ROOMS:
            return import_module(f"valleyscope.{name}")
        if name == "export":  # the package of this name hides the function
            return import_module("valleyscope.landscape.export").export
        if name in _TRAINING:
            return getattr(import_module("valleyscope.training"), name)
        if name in _LANDSCAPE:
            return getattr(import_module("valleyscope.landscape"), name)
        if name in _APP:
            return getattr(import_module(_APP[name]), name)
        if name in _MODULES:
            return getattr(import_module(f"valleyscope.{_MODULES[name]}"), name)
        raise AttributeError(f"module 'valleyscope' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, *_ROOMS]
