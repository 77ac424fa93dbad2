"""The page itself: verdict first, then the picture, the paths, the minima, training, provenance and words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, Final

from plotly.offline import get_plotlyjs

from valleyscope.landscape.analysis.grid_sampling import is_bend
from valleyscope.landscape.analysis.method_table import method_table, remarks
from valleyscope.landscape.analysis.published import published_beside
from valleyscope.landscape.claim import Claim, claim_of, computed_planes
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures import QUANTITIES, profile_paths
from valleyscope.landscape.figures.axes import is_far
from valleyscope.landscape.figures.contour import quantities_of
from valleyscope.landscape.figures.estimates import estimate_sentence
from valleyscope.landscape.figures.labels import belongs, shown_points
from valleyscope.landscape.figures.scale import significant
from valleyscope.landscape.figures.theme import quantity_title
from valleyscope.landscape.plot_style import STATIC, STYLE
from valleyscope.landscape.report import tables
from valleyscope.landscape.report.compact_table import compact_table
from valleyscope.landscape.report.curvature_section import curvature_section
from valleyscope.landscape.report.embedding import figure_data, import_map
from valleyscope.landscape.report.ensembles_section import ensembles_section
from valleyscope.landscape.report.forks_section import forks_section
from valleyscope.landscape.report.html_text import moment, text
from valleyscope.landscape.report.matrix_section import map_section, matrix_section
from valleyscope.landscape.report.verdict_section import head
from valleyscope.landscape.storage.atomic_write import write_atomically
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import TRAJECTORY, PathRecord, PlaneRecord, recorded

_ASSETS: Final = files("valleyscope.landscape.report")
_PATHS_CAPTION: Final = (
    "<p>Solid: fitted curves. Dashed and dotted: straight lines, thin those to aligned minima. Each has the colour of "
    "the minimum where it ends.</p>"
)


def write_report(landscape: Landscape, path: str | os.PathLike[str]) -> None:
    """Write the report as one HTML file that needs neither network nor other files, all at once."""
    content = report_html(landscape).encode()
    with write_atomically(path) as file:
        file.write(content)


def report_html(landscape: Landscape) -> str:
    """The report as HTML, with plotly.js inside."""
    colours = colours_of(landscape.minima)
    planes, claim = computed_planes(landscape), claim_of(landscape)
    # Trajectories are worth a picture also where no loss was computed.
    empty = [plane for plane in landscape.planes.values() if plane.offsets and not plane.done.any()]
    body = "".join(
        [
            *(_plane_section(plane, claim) for plane in (*planes, *empty)),
            _paths_section(landscape),
            matrix_section(landscape, colours),
            map_section(landscape, _figure),
            _methods_section(landscape),
            forks_section(landscape, _figure),
            ensembles_section(landscape),
            _minima_section(landscape, colours),
            curvature_section(landscape, _figure),
            _training_section(landscape, colours),
            _surfaces_section(planes),
            _section("Provenance", tables.provenance_list(landscape) + tables.spec_block(landscape)),
            _section("What the words mean", _glossary()),
        ]
    )
    script = _asset("report.js")
    return Template(_asset("report.html")).substitute(
        title=text(landscape.name),
        facts=text(" · ".join(_facts(landscape))),
        verdict=head(landscape.verdict),
        body=body,
        style=_asset("report.css"),
        plotly=get_plotlyjs(),
        data=figure_data(landscape, colours),
        modules=import_map(script, _loss_unit(landscape)),
        script=script,
    )


def _plane_section(plane: PlaneRecord, claim: Claim | None) -> str:
    """Train loss and test error of a plane, or what was recorded instead."""
    shown = "".join(
        _figure(
            f"{split} {value} on the plane {plane.name}",
            quantity_title(split, value, loss_unit=plane.loss_unit),
            **{"kind": "contour", "plane": plane.name, "split": split, "value": value},
        )
        for split, value in _shown_quantities(plane)
    )
    return _section(f"Plane {plane.name}", f'<div class="pair">{shown}</div>{_caption(plane, claim)}')


def _paths_section(landscape: Landscape) -> str:
    paths = profile_paths(landscape)
    if not paths:
        return ""
    plot = _figure(f"{_along(paths)} along the paths between the minima", kind="profile")
    return _section("Along the paths", plot + _PATHS_CAPTION + tables.paths_table(paths))


def _along(paths: Sequence[PathRecord]) -> str:
    has_error = any(recorded(values.error) for path in paths for values in path.splits.values())
    return "loss and error" if has_error else "loss"


def _minima_section(landscape: Landscape, colours: Mapping[str, str]) -> str:
    if not landscape.minima:
        return ""
    content = tables.minima_table(landscape, colours) + tables.pruning_lines(landscape)
    if any(minimum.layers for minimum in landscape.minima.values()):
        plot = _figure("groups that are zero, by layer", kind="sparsity")
        content += f"<h3>Sparsity by layer</h3>{_legend(colours)}{plot}"
    if compact := compact_table(landscape, colours):
        content += f"<h3>Compact networks</h3>{compact}"
    return _section("Minima", content)


def _methods_section(landscape: Landscape) -> str:
    """A comparison of pruning methods, if the landscape is one."""
    rows = method_table(landscape)
    if not rows:
        return ""
    said = "".join(f"<p>{text(remark)}</p>" for remark in remarks(rows))
    pictured = any({"macs", "test_accuracy"} <= row.values.keys() for row in rows)
    plot = _figure("test accuracy over the multiply-adds left", kind="pareto") if pictured else ""
    content = said + plot + tables.methods_table(rows)
    if published := published_beside(landscape.spec or {}):
        content += f"<h3>Published, not ours</h3>{tables.published_table(published)}"
    return _section("Pruning methods", content)


def _training_section(landscape: Landscape, colours: Mapping[str, str]) -> str:
    """Loss, accuracy and sparsity over the epochs, as far as they were measured."""
    epochs = [minimum.epochs for minimum in landscape.minima.values()]
    measured = [
        quantity
        for quantity in ("loss", "accuracy", "sparsity")
        for columns in [QUANTITIES[quantity]["columns"].values()]
        if any(recorded(record[column]) for record in epochs for column in columns if column in record)
    ]
    if not measured:
        return ""
    plot = _figure(f"{_listed(measured)} over the epochs", kind="training", quantities=" ".join(measured))
    return _section("Training", _legend(colours) + plot)


def _surfaces_section(planes: Iterable[PlaneRecord]) -> str:
    """The first quantity of every plane in three dimensions."""
    plots = ""
    for plane in planes:
        split, value = _shown_quantities(plane)[0]
        title = f"plane {plane.name}: {split} {value}"
        where = {"plane": plane.name, "split": split, "value": value}
        plots += _figure(f"{title} in three dimensions", title, kind="surface3d", **where)
    return _section("In three dimensions", f'<div class="pair">{plots}</div>') if plots else ""


def _shown_quantities(plane: PlaneRecord) -> Sequence[tuple[str, str]]:
    """Train loss and test error where recorded; else the first that are."""
    there = quantities_of(plane) or [(next(iter(plane.splits)), "loss")]
    return [pair for pair in there if pair in (("train", "loss"), ("test", "error"))] or there[:2]


def _section(title: str, content: str) -> str:
    return f"<section><h2>{text(title)}</h2>{content}</section>\n"


def _figure(label: str, title: str = "", **data: str) -> str:
    """A place that the script fills with the figure that its data names.

    The title is text of the page, not of the figure: it wraps, and a screen reader finds it.
    """
    caption = f"<figcaption>{text(title)}</figcaption>" if title else ""
    said = "".join(f' data-{key}="{text(value)}"' for key, value in data.items())
    return f'<figure>{caption}<div class="plot" role="img" aria-label="{text(label)}"{said}></div></figure>'


def _legend(colours: Mapping[str, str]) -> str:
    names = (f"<span>{tables.dot(colour)}{text(name)}</span>" for name, colour in colours.items())
    return f'<p class="legend">{"".join(names)}</p>'


def _caption(plane: PlaneRecord, claim: Claim | None) -> str:
    """What a reader must know of the picture, in full sentences."""
    points = shown_points(plane)
    curves = [name for name in plane.paths if not name.startswith(TRAJECTORY)]
    sentences = [_spanned_by(plane)]
    if curves:
        sentences.append(f"White: the fitted curve {_listed(curves)}.")
    if len([name for name in plane.defining if not is_bend(name)]) > 1:
        sentences.append("Dashed: straight lines.")
    if claim is not None and any(claim.level(plane, *pair) for pair in _shown_quantities(plane)):
        sentences.append(STYLE["titles"]["tolerance"])
    levels = [] if claim is None else [claim.level(plane, *pair) for pair in _shown_quantities(plane)]
    if any(level is not None and level.floor is not None for level in levels):
        sentences.append(STYLE["titles"]["floor"])
    if len(curves) < len(plane.paths):
        projected = "" if plane.kind == "principal" else ", projected on the plane"
        sentences.append(f"Dotted chains: training, snapshot by snapshot{projected}.")
    farthest = max((float(values.max()) for values in plane.offsets.values() if values.size), default=0.0)
    if farthest > 0:
        sentences.append(f"Snapshots lie up to {significant(farthest)} off the plane.")
    hollow = [
        f"{name} ({significant(plane.distances[name])} off the plane)" for name in points if plane.is_projected(name)
    ]
    if hollow:
        sentences.append(f"Hollow: projected, {_listed(hollow)}.")
    outside = [name for name in plane.points if name not in points and belongs(name, plane) and not is_far(plane, name)]
    if outside:
        sentences.append(f"Outside the frame: {_listed(outside)}.")
    if (estimate := estimate_sentence(plane)) is not None:
        sentences.append(estimate)
    if not plane.complete:
        sentences.append(f"Hatched: not computed yet ({plane.done.mean():.0%} of the grid is).")
    if plane.note:
        sentences.append(plane.note[:1].upper() + plane.note[1:].rstrip(".") + ".")
    return f"<p>{text(' '.join(sentences))}</p>"


def _spanned_by(plane: PlaneRecord) -> str:
    rows, columns = plane.shape
    grid = f"{columns} by {rows} points"
    if plane.axes:
        return f"Measured directions around {_listed(plane.defining) or 'one minimum'}, {grid}."
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


def _loss_unit(landscape: Landscape) -> str:
    units = [record.loss_unit for record in landscape.planes.values()]
    units += [record.loss_unit for record in profile_paths(landscape)]
    return next(iter(units), "nats")


def _glossary() -> str:
    """The words of the report, as the help of the dashboard explains them."""
    known = json.loads((STATIC / "glossary.json").read_text(encoding="utf-8"))
    words = {word: known["words"][word] for word in ("minimum", "barrier", "rise", "plane", "sparsity", "sharpness")}
    shown = {**words, **known["verdicts"]}
    entries = (f"<div><dt>{text(word)}</dt><dd>{text(meaning)}</dd></div>" for word, meaning in shown.items())
    return f'<dl class="words">{"".join(entries)}</dl>'


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")
