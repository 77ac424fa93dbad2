"""Loads the figures when something is drawn for the first time.

Results such as surfaces draw themselves in notebooks, but figures are made from results: they may not be imported
before, and processes that only compute never load plotly.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


def result_figures() -> Any:
    """The module ``result_figures``."""
    return import_module("valleyscope.landscape.result_figures")
