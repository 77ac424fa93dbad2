"""Figures say what the records say: real values, equal units, everything inside the frame, nothing made up."""

from __future__ import annotations

import itertools
import json
import re
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.landscape import cases
from valleyscope.landscape import figures
from valleyscope.landscape.analysis.grid_sampling import coarse_lattice, sample
from valleyscope.landscape.claim import claim_of, computed_planes
from valleyscope.landscape.colours import FURTHER, NAMED, colours_of
from valleyscope.landscape.figures.labels import _FRAME, _box, _overlap, labels_of
from valleyscope.landscape.figures.scale import Scale, scale_for, significant
from valleyscope.landscape.figures.tolerance_contour import labelled_line, level_lines
from valleyscope.landscape.geometry.tiles import tiles
from valleyscope.landscape.plot_style import STATIC, STYLE
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.records import Grid, PlaneRecord

LANDSCAPE = cases.landscape(21)
BASINS, VALLEY = LANDSCAPE.planes["basins"], LANDSCAPE.planes["valley"]
CLAIM = claim_of(LANDSCAPE)
MINIMA = list(LANDSCAPE.minima.values())


def every_figure(theme: Any = "light") -> dict[str, Any]:
    known = np.zeros(BASINS.shape, dtype=bool)
    known[:9] = True
    partial = cases.half_done(BASINS, known)
    return {
        "contour": figures.contour(BASINS, theme=theme),
        "error": figures.contour(VALLEY, "test", "error", theme=theme),
        "linear": figures.contour(BASINS, log=False, clip=0.5, theme=theme),
        "claim": figures.contour(BASINS, claim=CLAIM, theme=theme),
        "claim 3d": figures.surface3d(VALLEY, claim=CLAIM, theme=theme),
        "partial": figures.contour(partial, theme=theme),
        "surface3d": figures.surface3d(BASINS, theme=theme),
        "partial 3d": figures.surface3d(partial, theme=theme),
        "profile": figures.profile(*figures.profile_paths(LANDSCAPE), theme=theme),
        **{name: figures.training(MINIMA, name, theme=theme) for name in figures.QUANTITIES},
        "layers": figures.sparsity(MINIMA, theme=theme),
        "paper": figures.paper_figure(LANDSCAPE, theme=theme),
    }


FIGURES = every_figure()


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def array(spec: dict[str, str]) -> np.ndarray[Any, Any]:
    """A typed array of plotly's JSON as numpy."""
    values = np.frombuffer(b64decode(spec["bdata"]), dtype=spec["dtype"])
    return values.reshape([int(part) for part in spec["shape"].split(",")]) if "shape" in spec else values


@pytest.mark.parametrize("name", FIGURES)
def test_json_of_a_figure_has_neither_nan_nor_infinity(name: str) -> None:
    json.loads(FIGURES[name].to_json(), parse_constant=refuse)


def test_traces_do_not_depend_on_the_theme() -> None:
    for name, dark in every_figure("dark").items():
        light = json.loads(FIGURES[name].to_json())
        other = json.loads(dark.to_json())
        assert other["data"] == light["data"], name
        assert other["layout"] != light["layout"], name


def test_surface_travels_as_binary_and_encodes_log10_of_the_loss() -> None:
    trace = json.loads(figures.contour(BASINS, log=True, clip=10.0).to_json())["data"][0]
    encoded = array(trace["z"])
    np.testing.assert_allclose(10.0**encoded, np.maximum(BASINS.splits["train"].loss, 0.001), rtol=1e-5)
    assert encoded.shape == (len(BASINS.y), len(BASINS.x))


def test_colour_bar_has_real_values_at_its_ticks() -> None:
    bar = figures.contour(BASINS, log=True).data[0].colorbar
    for place, label in zip(bar.tickvals, bar.ticktext, strict=True):
        assert 10**place == pytest.approx(float(label.removeprefix("≥ ")), rel=0.02)
    percent = figures.contour(BASINS, "test", "error").data[0].colorbar
    for place, label in zip(percent.tickvals, percent.ticktext, strict=True):
        assert place == pytest.approx(float(label.removeprefix("≥ ").removesuffix(" %")), rel=0.02)


def test_hover_shows_coordinates_and_all_values_in_real_units() -> None:
    trace = json.loads(figures.contour(BASINS).to_json())["data"][0]
    values = array(trace["customdata"])
    template = trace["hovertemplate"]
    assert template.startswith("x %{x:.3g}, y %{y:.3g}")
    shown = ["train loss", "train error", "test loss", "test error"]
    for index, what in enumerate(shown):
        split, quantity = what.split()
        assert f"{what} %{{customdata[{index}]" in template
        np.testing.assert_allclose(values[..., index], BASINS.splits[split][quantity], rtol=1e-6)


@given(
    st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=40),
    st.booleans(),
    st.one_of(st.none(), st.floats(1e-3, 1e3)),
)
@settings(max_examples=60, deadline=None)
def test_scale_keeps_order_and_stays_within_its_range(losses: list[float], log: bool, clip: float | None) -> None:
    values = np.array([*losses, np.inf])
    scale = scale_for(values, "loss", log, clip)
    encoded = scale.encode(np.sort(values))
    low, high = scale.range
    assert low < high
    assert (np.diff(encoded) >= 0).all()
    assert low <= encoded.min() <= encoded.max() <= high
    places, labels = scale.ticks().values()
    assert len(places) == len(labels) >= 2
    assert all(low - 1e-9 <= place <= high + 1e-9 for place in places)
    start, end, step = scale.levels().values()
    assert low < start
    assert (end - start) / step < 25


def test_default_clip_shows_the_ridge_between_the_basins() -> None:
    ridge = LANDSCAPE.lines["sgd-control"].splits["train"].loss.max()
    loss = BASINS.splits["train"].loss.copy()
    loss[:, -2:] = 1e9
    steep = PlaneRecord(**{**vars(BASINS), "splits": {"train": Grid(loss, BASINS.splits["train"].error)}})
    assert 0.9 * ridge <= 10 ** figures.contour(steep, log=True).data[0].zmax < 10
    assert figures.contour(steep, claim=CLAIM).data[0].zmax == pytest.approx(1.1 * ridge, rel=0.05)
    assert ridge <= figures.contour(steep).data[0].zmax < 10


def test_overflow_is_drawn_as_the_highest_colour() -> None:
    loss = BASINS.splits["train"].loss.copy()
    loss[3, 4] = np.inf
    record = PlaneRecord(**{**vars(BASINS), "splits": {"train": Grid(loss, BASINS.splits["train"].error)}})
    trace = figures.contour(record).data[0]
    assert trace.z[3][4] == pytest.approx(trace.zmax)
    assert trace.colorbar.ticktext[-1].startswith("≥")


def test_both_axes_have_the_same_unit_and_say_which() -> None:
    layout = figures.contour(BASINS).layout
    assert (layout.yaxis.scaleanchor, layout.yaxis.scaleratio) == ("x", 1)
    assert layout.xaxis.constrain == layout.yaxis.constrain == "domain"
    assert layout.xaxis.title.text == "towards altsdp, distance in weight space"
    assert layout.yaxis.title.text == "towards control<br>distance in weight space"
    ratio = figures.surface3d(BASINS).layout.scene.aspectratio
    assert ratio.x / ratio.y == pytest.approx(np.ptp(BASINS.x) / np.ptp(BASINS.y))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=4), st.floats(0.4, 2.5))
@settings(max_examples=60, deadline=None)
def test_labels_stay_inside_the_frame(places: list[tuple[float, float]], shape: float) -> None:
    names = ["sgd", "altsdp", "control", "valley.bend"]
    x, y = np.linspace(0, 1, 5), np.linspace(0, shape, 5)
    points = {name: (place[0], place[1] * shape) for name, place in zip(names, places, strict=False)}
    plane = PlaneRecord("p", "through", x, y, np.ones((5, 5), bool), {}, points=points)
    scale = _FRAME / max(1.0, shape)
    for name, label in labels_of(plane).items():
        pixels = (points[name][0] * scale, points[name][1] * scale)
        left, bottom, right, top = _box(pixels, label.text, label.anchor, label.shift)
        assert left >= 0
        assert bottom >= 0
        assert right <= scale
        assert top <= shape * scale


def test_labels_of_points_apart_do_not_touch() -> None:
    labels = {name: label.text for name, label in labels_of(BASINS).items()}
    assert labels["control"] == "control"
    assert labels["valley.bend"] == "bend (projected)"
    assert {label.anchor for label in labels_of(VALLEY).values()} > {("center", "bottom")}


def test_labels_of_points_off_the_plane_never_cover_those_on_it() -> None:
    x = y = np.linspace(0, 10, 5)
    crowd = {name: (5 + 0.05 * number, 5.0) for number, name in enumerate(["four", "five", "a-long-name-of-a-minimum"])}
    points = crowd | {"sgd": (4.5, 5.0), "altsdp": (5.5, 5.0), "far": (1.0, 9.0)}
    off = dict.fromkeys([*crowd, "far"], 0.9)
    plane = PlaneRecord("p", "through", x, y, np.ones((5, 5), bool), {}, points=points, distances=off)
    labels = labels_of(plane)
    assert {"sgd", "altsdp", "far"} <= labels.keys()
    places = {name: tuple(_FRAME / 10 * np.array(points[name])) for name in labels}
    boxes = {name: _box(places[name], label.text, label.anchor, label.shift) for name, label in labels.items()}
    for name, other in itertools.combinations(boxes, 2):
        assert _overlap(boxes[name], boxes[other]) == 0, f"{name} and {other}"


def test_points_off_the_plane_are_hollow_and_say_how_far() -> None:
    near = PlaneRecord(**{**vars(VALLEY), "points": VALLEY.points | {"control": (8, 1)}, "distances": {"control": 1.5}})
    traces = {trace.name: trace for trace in figures.contour(near).data}
    assert traces["sgd"].marker.color == NAMED["sgd"]
    assert traces["control"].marker.line.color == NAMED["control"]
    assert traces["control"].marker.color != NAMED["control"]
    assert "1.5 off the plane" in traces["control"].hovertemplate


def test_a_minimum_far_off_the_plane_is_named_at_the_edge_and_not_drawn() -> None:
    for figure in (figures.contour(VALLEY), figures.surface3d(VALLEY)):
        assert "control" not in {trace.name for trace in figure.data}
        assert [note.text for note in figure.layout.annotations if note.yref == "paper"] == [
            "control: 14.4 off this plane"
        ]


@pytest.mark.parametrize(
    ("height", "ratio", "note"),
    [(0.1, 4, "vertical axis stretched 4×"), (9.0, 1 / 7, "horizontal axis stretched 7×"), (1.0, 1, "")],  # noqa: RUF001
)
def test_very_flat_and_very_tall_planes_are_stretched_and_say_so(height: float, ratio: float, note: str) -> None:
    plane = PlaneRecord(**{**vars(BASINS), "y": height * BASINS.y, "points": {}, "paths": {}, "distances": {}})
    figure = figures.contour(plane)
    assert figure.layout.yaxis.scaleratio == pytest.approx(ratio)
    assert [text.text for text in figure.layout.annotations] == ([note] if note else [])
    sides = figures.surface3d(plane).layout.scene.aspectratio
    assert sides.y / sides.x == pytest.approx(ratio * np.ptp(plane.y) / np.ptp(plane.x))


@pytest.mark.parametrize("log", [False, True])
def test_the_tolerance_contour_is_where_the_loss_is_the_higher_end_plus_the_tolerance(log: bool) -> None:
    ends = LANDSCAPE.lines["sgd-altsdp"].splits["train"].loss[[0, -1]]
    wanted = max(ends) + cases.VERDICT["tolerance"]
    figure = figures.contour(BASINS, log=log, claim=CLAIM)
    drawn = [trace for trace in figure.data if trace.name == "tolerance"]
    assert len(drawn) == 2, "a line and its halo"
    places = np.array([drawn[0].x, drawn[0].y]).T
    values = sample(BASINS.x, BASINS.y, BASINS.splits["train"].loss, places[np.isfinite(places[:, 0])])
    np.testing.assert_allclose(values, wanted, rtol=1e-6)
    assert f"tolerance: loss ≤ {significant(wanted)}" in [text.text for text in figure.layout.annotations]
    relief = figures.surface3d(BASINS, log=log, claim=CLAIM)
    assert f"tolerance: loss ≤ {significant(wanted)}" in [text.text for text in relief.layout.scene.annotations]


def test_a_slope_has_a_second_contour_around_what_is_level_with_its_foot() -> None:
    """Without it both ends of a slope would look as level as those of a valley."""
    losses = LANDSCAPE.lines["sgd-altsdp"].splits["train"].loss
    slope = Landscape(
        **{**vars(LANDSCAPE), "verdict": cases.VERDICT | {"kind": "one basin, sloping", "tolerance": 0.02}}
    )
    figure = figures.contour(slope.planes["basins"], claim=claim_of(slope))
    floor = losses.min() + 0.02
    assert floor < losses[[0, -1]].max()
    assert [trace.line.dash for trace in figure.data if trace.name == "floor"] == [
        None,
        STYLE["contour"]["floor"]["dash"],
    ]
    assert f"level: loss ≤ {significant(floor)}" in [text.text for text in figure.layout.annotations]
    level = Landscape(**{**vars(LANDSCAPE), "verdict": cases.VERDICT | {"tolerance": 0.02}})
    assert "floor" not in {trace.name for trace in figures.contour(level.planes["basins"], claim=claim_of(level)).data}


def test_there_is_no_tolerance_contour_without_a_verdict_on_the_quantity() -> None:
    for figure in (figures.contour(BASINS), figures.contour(BASINS, "test", "error", claim=CLAIM)):
        assert "tolerance" not in {trace.name for trace in figure.data}
    judged = claim_of(
        Landscape(**{**vars(LANDSCAPE), "verdict": cases.VERDICT | {"test_error_verdict": {"tolerance": 0.02}}})
    )
    end = LANDSCAPE.lines["sgd-altsdp"].splits["test"].error[-1]
    texts = [text.text for text in figures.contour(BASINS, "test", "error", claim=judged).layout.annotations]
    assert f"tolerance: error ≤ {significant(100 * (end + 0.02))} %" in texts


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_level_lines_lie_on_the_level_and_part_high_from_low(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = np.cumsum(rng.uniform(0.5, 2, 6)), np.cumsum(rng.uniform(0.5, 2, 5))
    values = rng.normal(size=(5, 6))
    lines = level_lines(x, y, values, 0.1)
    for line in lines:
        np.testing.assert_allclose(sample(x, y, values, line), 0.1, atol=1e-9)
    edges = (np.diff(values > 0.1, axis=0) != 0).sum() + (np.diff(values > 0.1, axis=1) != 0).sum()
    closed = sum(bool((line[0] == line[-1]).all()) for line in lines)
    assert sum(map(len, lines)) - closed == edges, "every edge between high and low is crossed once"


def test_minima_are_marked_beside_the_colour_bar_at_their_values() -> None:
    figure = figures.contour(BASINS, claim=CLAIM)
    low, high = figure.data[0].zmin, figure.data[0].zmax
    marks = {shape.fillcolor: shape.yanchor for shape in figure.layout.shapes}
    for name in ("sgd", "altsdp", "control"):
        loss = sample(BASINS.x, BASINS.y, BASINS.splits["train"].loss, np.array([BASINS.points[name]]))[0]
        assert marks[NAMED[name]] == pytest.approx((loss - low) / (high - low))


def test_a_clip_below_a_minimum_says_so() -> None:
    notes = [text.text for text in figures.contour(BASINS, clip=0.02).layout.annotations if text.yref == "paper"]
    assert len(notes) == 1
    assert notes[0].startswith("above the clip: altsdp (0.04")


def test_the_plane_of_the_claim_comes_first() -> None:
    assert list(LANDSCAPE.planes) == ["valley", "basins"]
    assert [plane.name for plane in computed_planes(LANDSCAPE)] == ["basins", "valley"]
    titles = figures.paper_figure(LANDSCAPE).layout
    assert titles.yaxis.title.text.startswith("towards control")


def test_curve_is_white_and_lines_are_dashed() -> None:
    traces = [trace for trace in figures.contour(BASINS).data if getattr(trace, "mode", "") == "lines"]
    white = [trace for trace in traces if trace.line.color == "#ffffff"]
    assert {trace.name for trace in white} == {
        "curve valley",
        "straight line from sgd to altsdp",
        "straight line from sgd to control",
        "straight line from altsdp to control",
    }
    assert all((trace.line.dash == "solid") == trace.name.startswith("curve") for trace in white)


def test_a_minimum_has_one_colour_in_every_figure() -> None:
    expected = NAMED["altsdp"]

    def by_name(figure: Any) -> list[Any]:
        return [trace for trace in figure.data if trace.name and trace.name.startswith("altsdp")]

    assert by_name(figures.contour(BASINS))[0].marker.color == expected
    assert {trace.line.color for trace in by_name(figures.training(MINIMA))} == {expected}
    assert {trace.marker.color for trace in by_name(figures.sparsity(MINIMA))} == {expected}
    ends = {trace.name: trace.line.color for trace in figures.profile(*LANDSCAPE.lines.values()).data}
    assert ends["line: sgd to altsdp"] == expected


def test_colours_are_distinct_as_long_as_there_are_some() -> None:
    names = ["sgd", "altsdp", "control", *(f"run{number}" for number in range(len(FURTHER)))]
    assert len(set(colours_of(names).values())) == len(names)


def test_points_not_computed_are_empty_and_the_ground_hatched() -> None:
    known = np.zeros(BASINS.shape, dtype=bool)
    known[:9] = True
    figure = figures.contour(cases.half_done(BASINS, known))
    assert np.array_equal(np.isnan(np.array(figure.data[0].z, dtype=float)), ~known)
    assert figure.layout.images[0].source.startswith("data:image/svg+xml")
    assert figure.layout.images[0].layer == "below"
    assert not figures.contour(BASINS).layout.images


@pytest.mark.parametrize(("rows", "columns"), [(21, 21), (41, 25), (43, 30)])
def test_a_whole_picture_is_shown_after_the_first_tiles(rows: int, columns: int) -> None:
    done = np.zeros((rows, columns), dtype=bool)
    sizes = []
    for tile in tiles(rows, columns, 81):
        done[tile.rows, tile.columns] = True
        lattice = coarse_lattice(done)
        assert lattice is not None
        assert done[np.ix_(*lattice)].all()
        assert (lattice[0][[0, -1]] == (0, rows - 1)).all()
        assert (lattice[1][[0, -1]] == (0, columns - 1)).all()
        sizes.append(len(lattice[0]) * len(lattice[1]))
    assert sizes[0] >= 64
    assert sizes[-1] == rows * columns


def test_no_lattice_is_made_up_where_only_a_part_is_known() -> None:
    done = np.zeros((21, 21), dtype=bool)
    done[:9] = True
    assert coarse_lattice(done) is None


def test_sampling_is_exact_for_bilinear_surfaces() -> None:
    x, y = np.array([0.0, 1.0, 4.0]), np.array([-1.0, 0.0, 0.5])
    values = np.add.outer(2 * y, 3 * x) + np.multiply.outer(y, x)
    places = np.random.default_rng(0).uniform((0, -1), (4, 0.5), (50, 2))
    expected = 3 * places[:, 0] + 2 * places[:, 1] + places[:, 0] * places[:, 1]
    np.testing.assert_allclose(sample(x, y, values, places), expected, rtol=1e-12)
    assert np.isnan(sample(x, y, values, np.array([[5.0, 0.0]]))).all()
    values[0, 0] = np.inf
    assert sample(x, y, values, np.array([[1.0, 0.0]]))[0] == 3.0


def test_profile_has_the_values_of_its_paths() -> None:
    figure = figures.profile(LANDSCAPE.curves["valley"], LANDSCAPE.lines["sgd-altsdp"])
    by_axis = {(trace.name, trace.yaxis): trace for trace in figure.data}
    curve = by_axis["curve valley: sgd to altsdp", "y"]
    np.testing.assert_array_equal(curve.y, LANDSCAPE.curves["valley"].splits["train"].loss)
    assert curve.line.dash == "solid"
    error = by_axis["line: sgd to altsdp", "y2"]
    np.testing.assert_array_equal(error.y, LANDSCAPE.lines["sgd-altsdp"].splits["test"].error)
    assert error.line.dash == "dash"
    assert figure.layout.yaxis2.tickformat == ".0%"


def test_overflow_in_a_profile_is_drawn_at_the_top() -> None:
    path = cases.line("sgd", "control")
    highest = path.splits["train"].loss.max()
    path.splits["train"].loss[30] = np.inf
    trace = figures.profile(path).data[0]
    assert trace.y[30] <= highest
    json.loads(figures.profile(path).to_json(), parse_constant=refuse)


def test_large_grids_are_drawn_whole_with_fewer_contour_lines() -> None:
    record = cases.plane("basins", 401, 401)
    colours, lines = figures.contour(record).data[:2]
    assert np.shape(colours.z) == (401, 401)
    assert max(np.shape(lines.z)) < 161
    assert lines.contours.coloring == "none"


def test_nothing_is_sent_to_a_cloud() -> None:
    assert figures.CONFIG["showSendToCloud"] is False
    assert figures.CONFIG["displaylogo"] is False


def test_wrong_choices_are_named() -> None:
    with pytest.raises(ValueError, match="plane 'basins' has no split 'validation'; it has train, test"):
        figures.contour(BASINS, "validation")
    with pytest.raises(ValueError, match="value is 'accuracy'; choose loss or error"):
        figures.contour(BASINS, value="accuracy")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="theme is 'sepia'; choose light or dark"):
        figures.contour(BASINS, theme="sepia")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clip is -1"):
        figures.contour(BASINS, clip=-1)
    with pytest.raises(ValueError, match="quantity is 'speed'; choose one of loss"):
        figures.training(MINIMA, "speed")
    with pytest.raises(ValueError, match="has no plane 'ridge'; it has valley, basins"):
        figures.paper_figure(LANDSCAPE, "ridge")


def test_flat_surfaces_have_a_scale() -> None:
    for value in (0.0, 0.3, np.inf):
        scale = scale_for(np.full((3, 3), value))
        assert isinstance(scale, Scale)
        assert scale.range[0] < scale.range[1]


def test_the_train_error_stands_in_where_there_is_no_other() -> None:
    line = cases.line("sgd", "control")
    assert "test" in figures.profile(line).layout.yaxis2.title.text
    del line.splits["test"]
    shown = figures.profile(line)
    assert "train" in shown.layout.yaxis2.title.text
    assert len([trace for trace in shown.data if trace.yaxis == "y2"]) == 1


@pytest.mark.parametrize("sheet", ["static/style.css", "landscape/report/report.css"])
def test_style_sheets_have_the_inks_of_the_figures(sheet: str) -> None:
    text = (STATIC.parent / sheet).read_text(encoding="utf-8")
    shared = {"text": "ink", "muted": "ink-soft|muted", "axis": "line-strong", "panel": "panel"} | {
        "empty": "empty", "hatch": "hatch", **{name: name for name in NAMED},
    }  # fmt: skip
    found = 0
    for ink, tokens in shared.items():
        allowed = [STYLE["inks"][theme].get(ink) or NAMED[ink] for theme in ("light", "dark")]
        values = re.findall(rf"--(?:{tokens}): (#\w+);", text)
        assert values[:2] in ([], allowed[:1], allowed), ink
        assert set(values) <= set(allowed), ink
        found += bool(values)
    assert found >= 3


def test_the_tolerance_is_labelled_beside_the_first_minimum_unless_the_line_there_is_short() -> None:
    plane = cases.landscape(13).planes["basins"]
    first = np.array(plane.points[plane.defining[0]])
    steps = np.linspace(0, 1, 20)[:, None] * (1.0, 0.0)
    beside, away, spot = first + 1 + steps, first + 50 + np.repeat(steps, 2, axis=0), first + steps[:5]
    np.testing.assert_array_equal(labelled_line(plane, [away, beside, spot]), beside)
    np.testing.assert_array_equal(labelled_line(plane, [away, spot]), away)
