"""Figures of a landscape, as plotly figures made from its records.

Each function takes records and returns a ``plotly.graph_objects.Figure``; show it with ``CONFIG``. ``to_json`` of a
figure sends arrays as binary and has neither NaN nor infinity outside of them.
"""

from valleyscope.landscape.figures.contour import contour
from valleyscope.landscape.figures.forks import forks
from valleyscope.landscape.figures.minima_map import minima_map_figure
from valleyscope.landscape.figures.paper import paper_figure, profile_paths
from valleyscope.landscape.figures.pareto import pareto
from valleyscope.landscape.figures.profile import profile
from valleyscope.landscape.figures.sparsity import sparsity
from valleyscope.landscape.figures.surface3d import surface3d
from valleyscope.landscape.figures.theme import CONFIG
from valleyscope.landscape.figures.training import QUANTITIES, training

__all__ = [
    "CONFIG",
    "QUANTITIES",
    "contour",
    "forks",
    "minima_map_figure",
    "paper_figure",
    "pareto",
    "profile",
    "profile_paths",
    "sparsity",
    "surface3d",
    "training",
]
