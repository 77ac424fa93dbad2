"""Figures of a landscape, as plotly figures made from its records.

Each function takes records and returns a ``plotly.graph_objects.Figure``; show it with ``CONFIG``. ``to_json`` of a
figure sends arrays as binary and has neither NaN nor infinity outside of them.
"""

from landscape.figures.contour import contour
from landscape.figures.paper import paper_figure, profile_paths
from landscape.figures.profile import profile
from landscape.figures.sparsity import sparsity
from landscape.figures.surface3d import surface3d
from landscape.figures.theme import CONFIG
from landscape.figures.training import QUANTITIES, training

__all__ = [
    "CONFIG",
    "QUANTITIES",
    "contour",
    "paper_figure",
    "profile",
    "profile_paths",
    "sparsity",
    "surface3d",
    "training",
]
