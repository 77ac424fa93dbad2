"""The curvature of the minima: the page's own figures, and what the theorem's trial found in words."""

from __future__ import annotations

from collections.abc import Callable

from valleyscope.landscape.analysis.curvature_summary import trial_text
from valleyscope.landscape.report.html_text import text
from valleyscope.landscape.storage.landscape_file import Landscape

Figure = Callable[..., str]


def curvature_section(landscape: Landscape, figure: Figure) -> str:
    """Spectrum, growth in training, direction factors and trials; empty if no curvature was measured."""
    records = landscape.curvature
    if not records:
        return ""
    first = next(iter(records.values()))
    matrix = "generalised Gauss-Newton matrix" if first.kind == "ggn" else "Hessian"
    plots = [
        figure(
            "density of all eigenvalues", "Spectrum: density of all eigenvalues, ticks: those found", kind="spectrum"
        )
    ]
    if any(record.epochs for record in records.values()):
        plots.append(figure("curvature along training", "After the epochs of the snapshots", kind="growth"))
    if any(record.directions for record in records.values()):
        plots.append(figure("direction factors by layer", "Direction factors by layer", kind="factors"))
        title = "How they depend on the cut: median, smallest and largest"
        plots.append(figure("direction factors over the cut", title, kind="cuts"))
    for name, record in records.items():
        if record.directions is not None and len(record.directions.distances):
            plots.append(figure(f"loss around {name}", f"Train loss around {name}", kind="flatness", minimum=name))
    words = []
    for name, record in records.items():
        for run, trial in record.trials.items():
            title = f"Predicted from {name}, measured in {run}; open circles: s = 1"
            plots.append(figure(f"group norms of {run}", title, kind="theorem", minimum=name, run=run))
            words.append(f"<p>{text(trial_text(run, trial))}</p>")
    about = f"<p>{matrix} of the mean train loss over {first.samples:,} samples.</p>"
    pairs = "".join(plots)
    return f'<section><h2>Curvature</h2><div class="pair">{pairs}</div>{"".join(words)}{about}</section>\n'
