"""The page itself: verdict first, then the picture, the paths, the minima, training, provenance and words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from importlib.resources import files
from string import Template
from typing import Any, Final

from plotly.offline import get_plotlyjs

from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures import CONFIG, profile_paths
from valleyscope.landscape.figures.labels import belongs, shown_points
from valleyscope.landscape.figures.sampling import is_bend
from valleyscope.landscape.report import plots, tables
from valleyscope.landscape.report.plots import Plot
from valleyscope.landscape.report.verdict_section import head
from valleyscope.landscape.report.words import GLOSSARY, moment, text
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, PlaneRecord

_ASSETS: Final = files("valleyscope.landscape.report")
_PATHS_CAPTION: Final = (
    "<p>Solid: fitted curves. Dashed and dotted: straight lines. Each has the colour of the minimum where it ends.</p>"
)


def write_report(landscape: Landscape, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file that needs neither network nor other files, all at once."""
    content = report_html(landscape).encode()
    with write_atomically(path) as file:
        file.write(content)


def report_html(landscape: Landscape) -> str:
    """The report as HTML, with plotly.js inside."""
    colours = colours_of(landscape.minima)
    drawn: list[Plot] = []
    body = "".join(
        [
            *(_plane_section(plane, colours, drawn) for plane in landscape.planes.values() if plane.done.any()),
            _paths_section(landscape, colours, drawn),
            _minima_section(landscape, colours, drawn),
            _training_section(landscape, colours, drawn),
            _relief_section(landscape, colours, drawn),
            _section("Provenance", tables.provenance_list(landscape) + tables.spec_block(landscape)),
            _section("What the words mean", _glossary()),
        ]
    )
    return Template(_asset("report.html")).substitute(
        title=text(landscape.name),
        facts=text(" · ".join(_facts(landscape))),
        verdict=head(landscape.verdict),
        body=body,
        style=_asset("report.css"),
        plotly=get_plotlyjs(),
        figures="{" + ",".join(f'"plot-{plot.key}":{plot.to_json()}' for plot in drawn) + "}",
        config=_config(),
        script=_asset("report.js"),
    )


def _plane_section(plane: PlaneRecord, colours: Mapping[str, str], drawn: list[Plot]) -> str:
    pair = plots.plane_plots(plane, colours)
    drawn += pair
    return _section(f"Plane {plane.name}", f'<div class="pair">{_html(pair)}</div>{_caption(plane)}')


def _paths_section(landscape: Landscape, colours: Mapping[str, str], drawn: list[Plot]) -> str:
    paths = profile_paths(landscape)
    if not paths:
        return ""
    drawn.append(plots.profile_plot(landscape, colours))
    return _section("Along the paths", _html(drawn[-1:]) + _PATHS_CAPTION + tables.paths_table(paths))


def _minima_section(landscape: Landscape, colours: Mapping[str, str], drawn: list[Plot]) -> str:
    if not landscape.minima:
        return ""
    layers = plots.sparsity_plot(landscape, colours)
    content = tables.minima_table(landscape, colours)
    if layers is not None:
        drawn.append(layers)
        content += f"<h3>Sparsity by layer</h3>{layers.html}"
    return _section("Minima", content)


def _training_section(landscape: Landscape, colours: Mapping[str, str], drawn: list[Plot]) -> str:
    curves = plots.training_plots(landscape, colours)
    drawn += curves
    return _section("Training", f'<div class="triple">{_html(curves)}</div>') if curves else ""


def _relief_section(landscape: Landscape, colours: Mapping[str, str], drawn: list[Plot]) -> str:
    reliefs = plots.relief_plots(landscape, colours)
    drawn += reliefs
    return _section("In three dimensions", f'<div class="pair">{_html(reliefs)}</div>') if reliefs else ""


def _section(title: str, content: str) -> str:
    return f"<section><h2>{text(title)}</h2>{content}</section>\n"


def _html(shown: Iterable[Plot]) -> str:
    return "".join(plot.html for plot in shown)


def _caption(plane: PlaneRecord) -> str:
    """What a reader must know of the picture, in full sentences."""
    points = shown_points(plane)
    curves = [name for name in plane.paths if not name.startswith(TRAJECTORY)]
    sentences = [_spanned_by(plane)]
    if curves:
        sentences.append(f"White: the fitted curve {_listed(curves)}.")
    if len([name for name in plane.defining if not is_bend(name)]) > 1:
        sentences.append("Dashed: straight lines.")
    if len(curves) < len(plane.paths):
        sentences.append("Dotted chains: training, epoch by epoch.")
    hollow = [f"{name} ({plane.distances[name]:.3g} off the plane)" for name in points if plane.is_projected(name)]
    if hollow:
        sentences.append(f"Hollow: projected, {_listed(hollow)}.")
    outside = [name for name in plane.points if name not in points and belongs(name, plane)]
    if outside:
        sentences.append(f"Outside the frame: {_listed(outside)}.")
    if not plane.complete:
        sentences.append(f"Hatched: not computed yet ({plane.done.mean():.0%} of the grid is).")
    if plane.note:
        sentences.append(plane.note[:1].upper() + plane.note[1:].rstrip(".") + ".")
    return f"<p>{text(' '.join(sentences))}</p>"


def _spanned_by(plane: PlaneRecord) -> str:
    rows, columns = plane.shape
    grid = f"{columns} by {rows} points"
    if plane.kind == "around":
        return f"Random directions around {_listed(plane.defining) or 'one minimum'}, {grid}."
    if plane.kind == "principal":
        return f"Principal directions of training, {grid}."
    return f"The plane through {_listed(plane.defining)}, {grid}." if plane.defining else f"A plane of {grid}."


def _listed(names: Iterable[str]) -> str:
    *front, last = [*names] or [""]
    return f"{', '.join(front)} and {last}" if front else last


def _facts(landscape: Landscape) -> list[str]:
    spec = landscape.spec
    model: Any = spec.get("model")
    name = model.get("name") if isinstance(model, Mapping) else model
    count = len(landscape.minima)
    facts = [spec.get("dataset"), name, f"{count} minim{'um' if count == 1 else 'a'}" if count else None]
    return [*(str(fact) for fact in facts if fact), moment(landscape.updated or landscape.created)]


def _glossary() -> str:
    entries = (f"<div><dt>{word}</dt><dd>{meaning}</dd></div>" for word, meaning in GLOSSARY)
    return f'<dl class="words">{"".join(entries)}</dl>'


def _config() -> str:
    return json.dumps({**CONFIG, "responsive": False})


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
