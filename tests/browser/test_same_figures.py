"""Python and the page draw the same figures: equal traces, ticks, labels and layouts from the same landscapes."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Route

from tests.landscape import cases
from tests.landscape.analysis.test_method_table import compared
from tests.landscape.figures.test_figures import array
from tests.landscape.fork_cases import forked
from tests.landscape.many_minima import many_minima
from valleyscope.landscape import figures
from valleyscope.landscape.analysis.fork_curves import fork_curves
from valleyscope.landscape.analysis.method_table import method_table
from valleyscope.landscape.analysis.minima_map import minima_map
from valleyscope.landscape.claim import Level, claim_of
from valleyscope.landscape.colours import colours_of
from valleyscope.landscape.figures.matrix_cells import cell_colour, cell_ink, cell_mark
from valleyscope.landscape.figures.scale import scale_for, significant
from valleyscope.landscape.geometry.tiles import tiles
from valleyscope.landscape.plot_style import STATIC
from valleyscope.landscape.report.embedding import figure_data, plane_data
from valleyscope.landscape.storage.landscape_file import Landscape
from valleyscope.landscape.storage.map_record import KINDS, MinimaMap, Scaled
from valleyscope.landscape.storage.records import Grid, LayerRecord, MinimumRecord, PlaneRecord

ADDRESS = "http://figures.test"
TYPES = {".js": "text/javascript", ".json": "application/json"}
MODULES = ("landscape/claim", "landscape/plane", "landscape/records", *(f"plots/{name}" for name in (
    "contour", "export", "forks", "matrix-cells", "minima-map", "numbers", "pareto", "profile", "scale", "sparsity",
    "surface3d", "training",
)))  # fmt: skip
# Figures as JSON, with words for numbers that JSON lacks.
SCRIPT = """async ({ modules, data, wanted }) => {
  const loaded = await Promise.all(modules.map((name) => import(`/${name}.js`)));
  const page = Object.assign({}, ...loaded);
  const planes = page.each(data.planes, page.Plane.whole);
  const minima = data.minima.map(page.minimumOf);
  const paths = data.paths.map(page.pathOf);
  const claim = page.claimOf(data.verdict, paths);
  const entries = page.profileEntries(paths, data.colours);
  const runs = minima.map(({ name, epochs }) => ({ label: name, epochs, color: data.colours[name] }));
  const shared = { colours: data.colours, hover: true, claim };
  const draw = {
    contour: ({ plane, ...view }) => {
      const { data, layout } = page.contourFigure(planes[plane], { ...shared, ...view });
      return { data, layout };
    },
    surface3d: ({ plane, ...view }) => page.surfaceFigure(planes[plane], { ...shared, ...view }),
    profile: (view) => page.profilePairFigure(entries, { splits: ['train', data.errorSplit], ...view }),
    training: ({ quantity, log }) => page.trainingParts(runs, quantity, log),
    forks: ({ mode }) => page.forksFigure(data.forks, { mode }),
    map: ({ found, ...view }) => page.minimaMapFigure(found, { ...view, colours: data.colours }),
    pareto: ({ mode }) => page.paretoFigure(data.methods, { mode }),
    sparsity: ({ mode }) => page.sparsityFigure(minima, { mode, colours: data.colours }),
    paper: ({ plane, mode }) => page.paperFigure(planes[plane], [
      { ...shared, mode, split: 'train', value: 'loss', log: false },
      { ...shared, mode, split: 'test', value: 'error', log: false },
    ], entries, { mode, log: false }),
    scale: ({ values, value, log, clip, level }) => {
      const scale = page.scaleFor(values.map(Number), value, log, clip, [], level);
      return { range: scale.range, levels: scale.levels(), ...scale.ticks() };
    },
    number: ({ value }) => page.significant(Number(value)),
    cell: ({ value, end, tolerance }) => {
      const colour = page.cellColour(Number(value), end);
      return { colour, ink: page.cellInk(colour), mark: page.cellMark(Number(value), NaN, NaN, tolerance) };
    },
  };
  return JSON.stringify(wanted.map(([kind, options]) => draw[kind](options)), (_, value) => {
    if (ArrayBuffer.isView(value)) return Array.from(value);
    return typeof value === 'number' && !Number.isFinite(value) ? (Number.isNaN(value) ? null : String(value)) : value;
  });
}"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A page that can import the dashboard's modules; no server is needed."""

    def answer(route: Route) -> None:
        path = STATIC / route.request.url.removeprefix(f"{ADDRESS}/")
        if path.is_file():
            route.fulfill(body=path.read_bytes(), content_type=TYPES[path.suffix])
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    context = browser.new_context()
    context.route("**/*", answer)
    found = context.new_page()
    found.goto(f"{ADDRESS}/empty")
    yield found
    context.close()


def drawn_by_page(page: Page, landscape: Landscape, wanted: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    data = json.loads(figure_data(landscape, colours_of(landscape.minima)))
    data["planes"] = {name: plane_data(plane) for name, plane in landscape.planes.items()}  # not thinned
    found: list[Any] = json.loads(page.evaluate(SCRIPT, {"modules": MODULES, "data": data, "wanted": wanted}))
    return found


def plain(value: Any) -> Any:
    """A Python figure as the page's JSON has it."""
    if isinstance(value, dict) and "bdata" in value:
        value = array(value)
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "Infinity"
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return [plain(entry) for entry in value] if isinstance(value, list | tuple) else value


def drawn_by_python(figure: Any, *left_out: str) -> Any:
    found = plain(figure.to_plotly_json())
    for traces in found["layout"]["template"]["data"].values():
        for trace in traces:
            trace.pop("type", None)
    return without(found, *left_out)


def without(figure: Any, *left_out: str) -> Any:
    for name in left_out:
        part, _, key = name.rpartition(".")
        for holder in figure["data"] if part == "data" else [figure["layout"]]:
            holder.pop(key, None)
    return figure


def differences(page: Any, python: Any, where: str = "") -> Iterator[str]:
    """Every place where two figures differ; numbers may by what single precision makes of them."""
    if isinstance(page, dict) and isinstance(python, dict):
        for key in page.keys() | python.keys():
            if page.get(key) != [] or key in python:  # plotly leaves out lists that are empty
                yield from differences(page.get(key, "(nothing)"), python.get(key, "(nothing)"), f"{where}.{key}")
    elif isinstance(page, list) and isinstance(python, list):
        if len(page) != len(python):
            yield f"{where}: {len(page)} entries on the page, {len(python)} in Python"
        for index, (one, other) in enumerate(zip(page, python, strict=False)):
            yield from differences(one, other, f"{where}[{index}]")
    elif isinstance(page, int | float) and isinstance(python, int | float):
        same_kind = isinstance(page, bool) == isinstance(python, bool)
        if not (same_kind and math.isclose(page, python, rel_tol=1e-6, abs_tol=1e-6)):
            yield f"{where}: {page} on the page, {python} in Python"
    elif page != python:
        yield f"{where}: {page!r} on the page, {python!r} in Python"


def check(page: Page, landscape: Landscape, pairs: list[tuple[str, dict[str, Any], Any]]) -> None:
    """Compare what the page draws of each kind and options with what Python drew."""
    found = drawn_by_page(page, landscape, [(kind, options) for kind, options, _ in pairs])
    wrong = [
        f"{kind} {options}{difference}"
        for (kind, options, python), drawn in zip(pairs, found, strict=True)
        for difference in itertools.islice(differences(drawn, python), 5)
    ]
    assert not wrong, "\n".join(wrong[:40])


def with_loss(change: Callable[[Any], Any]) -> PlaneRecord:
    """A small plane whose losses are changed."""
    plane = cases.plane("basins", 13, 11)
    grids = {split: Grid(change(grid.loss.copy()), grid.error) for split, grid in plane.splits.items()}
    return PlaneRecord(**{**vars(plane), "splits": grids})


def overflowing(loss: Any) -> Any:
    loss[:2, 3:] = np.inf
    return loss


def first_tiles(plane: PlaneRecord, count: int) -> PlaneRecord:
    done = np.zeros(plane.shape, dtype=bool)
    for tile in itertools.islice(tiles(*plane.shape, 81), count):
        done[tile.rows, tile.columns] = True
    return cases.half_done(plane, done)


def crowded() -> PlaneRecord:
    """More named points than have room, some of them off the plane or outside."""
    plane = cases.plane("basins", 13, 11)
    plane.unit = "<b>steps</b> & %{x}"
    more = {f"run{n}": (0.9 * n - 4.0, 1.7 * n) for n in range(11)}
    off = {f"run{n}": 3.0 for n in (2, 5, 6)}
    return PlaneRecord(**{**vars(plane), "points": plane.points | more, "distances": plane.distances | off})


def without_error() -> PlaneRecord:
    plane = cases.plane("valley", 9, 9)
    grids = {split: Grid(grid.loss, np.full(plane.shape, np.nan)) for split, grid in plane.splits.items()}
    return PlaneRecord(**{**vars(plane), "splits": grids})


def shaped(height: float) -> PlaneRecord:
    """A plane whose vertical axis is shorter or longer."""
    plane = cases.plane("basins", 13, 11)
    points = {name: (x, height * y) for name, (x, y) in plane.points.items()}
    paths = {name: places * (1, height) for name, places in plane.paths.items()}
    return PlaneRecord(**{**vars(plane), "y": height * plane.y, "points": points, "paths": paths})


PLANES: dict[str, PlaneRecord] = {
    "regular": cases.plane("valley", 21, 21),
    "overflow": with_loss(overflowing),
    "nothing finite": with_loss(lambda loss: np.full_like(loss, np.inf)),
    "flat": with_loss(lambda loss: np.full_like(loss, 0.3)),
    "zero": with_loss(np.zeros_like),
    "some zero": with_loss(lambda loss: np.maximum(loss - 0.05, 0)),
    "huge": with_loss(lambda loss: 1e9 * loss),
    "thousands": with_loss(lambda loss: 2000 * loss),
    "tiny": with_loss(lambda loss: 1e-9 * loss),
    "narrow range": with_loss(lambda loss: 2 + 0.1 * loss),
    "first tile": first_tiles(cases.plane("basins", 41, 31), 1),
    "some tiles": first_tiles(cases.plane("basins", 41, 31), 4),
    "some rows": cases.half_done(cases.plane("basins", 13, 11), np.arange(11)[:, None] < np.full(13, 4)),
    "very flat": shaped(height=0.1),
    "very tall": shaped(height=9.0),
    "fine": cases.plane("valley", 205, 7),
    "crowded": crowded(),
    "without error": without_error(),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANES)
def test_surfaces_are_the_same(page: Page, name: str) -> None:
    plane = PLANES[name]
    landscape = cases.landscape(9)
    landscape.planes = {name: plane}
    # Every second plane shows a slope, which has a contour more.
    kind = ("level valley", "one basin, sloping")[list(PLANES).index(name) % 2]
    landscape.verdict = cases.VERDICT | {"test_error_verdict": {"kind": kind, "tolerance": 0.01}}
    landscape.verdict |= {"kind": kind, "tolerance": 0.02}
    colours, claim = colours_of(landscape.minima), claim_of(landscape)
    pairs: list[tuple[str, dict[str, Any], Any]] = []
    views = [("train", "loss", True, None), ("train", "loss", False, None), ("test", "loss", True, 0.5)]
    if name != "without error":
        views += [("test", "error", True, None), ("train", "error", True, 0.3)]
    for (split, value, log, clip), mode in zip(views, itertools.cycle(("light", "dark"))):
        options = {"plane": name, "split": split, "value": value, "log": log, "clip": clip, "mode": mode}
        chosen: Any = {"log": log, "clip": clip, "theme": mode, "colours": colours, "title": "", "claim": claim}
        for kind, draw in (("contour", figures.contour), ("surface3d", figures.surface3d)):
            pairs.append((kind, options, drawn_by_python(draw(plane, split, value, **chosen))))  # type: ignore[arg-type]
    check(page, landscape, pairs)


def overflowing_paths() -> Landscape:
    landscape = cases.landscape(9)
    landscape.lines["sgd-control"].splits["train"].loss[20:30] = np.inf
    del landscape.curves["valley"].splits["test"]
    return landscape


def small_errors() -> Landscape:
    landscape = cases.landscape(9)
    for path in (*landscape.curves.values(), *landscape.lines.values()):
        for values in path.splits.values():
            values.error[:] *= 0.01
            values.loss[:] = 2 + 0.01 * values.loss
    return landscape


def with_aligned_line() -> Landscape:
    landscape = cases.landscape(9)
    landscape.aligned = dict(list(landscape.lines.items())[:1])
    return landscape


@pytest.mark.parametrize("make", [lambda: cases.landscape(9), overflowing_paths, small_errors, with_aligned_line])
def test_profiles_and_the_figure_of_the_paper_are_the_same(page: Page, make: Callable[[], Landscape]) -> None:
    landscape = make()
    colours, paths = colours_of(landscape.minima), figures.profile_paths(landscape)
    pairs: list[tuple[str, dict[str, Any], Any]] = []
    for log, mode in ((False, "light"), (True, "dark")):
        figure = figures.profile(*paths, log=log, theme=mode, colours=colours)  # type: ignore[arg-type]
        pairs.append(("profile", {"log": log, "mode": mode}, drawn_by_python(figure)))
    for plane in landscape.planes:
        figure = figures.paper_figure(landscape, plane)
        figure.update_layout(paper_bgcolor="#ffffff")  # the page's is for saving: it has a ground
        pairs.append(("paper", {"plane": plane, "mode": "light"}, drawn_by_python(figure)))
    check(page, landscape, pairs)


def untidy_minimum() -> MinimumRecord:
    """One whose training was short, diverged and recorded little; the names of its layers are read as text."""
    epochs = {"epoch": np.array([1.0, 2.0, 3.0]), "train_loss": np.array([2.0, np.inf, np.nan])}
    layers = [LayerRecord("<b>head</b> & %{y}", 4, 1, 40, 10), LayerRecord("empty", 0, 0, 3, 0)]
    return MinimumRecord("untidy", "sgd", epochs=epochs | {"angle": np.full(3, np.nan)}, layers=layers)


def one_epoch() -> MinimumRecord:
    return MinimumRecord("short", "sgd", epochs={"train_loss": np.array([0.4]), "sparsity": np.array([0.2])})


MINIMA = {
    "regular": lambda: [cases.minimum(name) for name in ("sgd", "altsdp", "control")],
    "untidy": lambda: [untidy_minimum(), one_epoch()],
    "both": lambda: [cases.minimum("altsdp"), untidy_minimum()],
}


@pytest.mark.parametrize("name", MINIMA)
def test_training_and_sparsity_are_the_same(page: Page, name: str) -> None:
    minima = MINIMA[name]()
    landscape = Landscape("one", minima={minimum.name: minimum for minimum in minima})
    pairs: list[tuple[str, dict[str, Any], Any]] = []
    for quantity, shown in figures.QUANTITIES.items():
        drawn = drawn_by_python(figures.training(minima, quantity), "data.legendgroup", "data.showlegend")
        traces = [trace | {"xaxis": "x", "yaxis": "y"} for trace in drawn["data"]]
        axes = {"xaxis": drawn["layout"]["xaxis"], "yaxis": drawn["layout"]["yaxis"]}
        pairs.append(("training", {"quantity": quantity, "log": True}, {"traces": traces, **axes}))
        assert drawn["layout"]["title"]["text"] == shown["title"]
    found = drawn_by_page(page, landscape, [("sparsity", {"mode": "dark"})])
    beside = ("legend", "showlegend", "height", "margin")  # Python's has a legend and room for it
    python = drawn_by_python(figures.sparsity(minima, theme="dark"), *beside)
    assert not list(differences(without(found[0], *beside), python))
    check(page, landscape, pairs)


def test_methods_over_multiply_adds_are_the_same(page: Page) -> None:
    landscape = compared()
    rows = method_table(landscape)
    check(page, landscape, [("pareto", {"mode": "dark"}, drawn_by_python(figures.pareto(rows, theme="dark")))])


def test_curves_of_forks_are_the_same(page: Page) -> None:
    landscape = forked()
    curves = fork_curves(landscape)
    assert curves is not None
    check(page, landscape, [("forks", {"mode": "dark"}, drawn_by_python(figures.forks(curves, theme="dark")))])


def test_maps_of_minima_are_the_same(page: Page) -> None:
    landscape = many_minima(5)
    found = minima_map(landscape)
    assert found is not None
    for kind in KINDS:
        figure = figures.minima_map_figure(found, kind, colours_of(landscape.minima), theme="dark")
        options = {"found": found.to_json(), "kind": kind, "mode": "dark"}
        check(page, landscape, [("map", options, drawn_by_python(figure))])


def test_minima_that_would_touch_on_a_narrow_page_share_a_label(page: Page) -> None:
    places = np.array([[0, 0], [14, 0], [150, 0], [300, 0]])  # pixels of a page that is wide enough
    names = ("m0", "m1", "m2", "m3")
    found = MinimaMap(names, names, np.zeros((4, 4)), {kind: Scaled(places, 1.0) for kind in KINDS}).to_json()
    view = {"found": found, "kind": "distance", "mode": "light"}
    wide, narrow = drawn_by_page(page, many_minima(4), [("map", {**view, "room": room}) for room in (1200, 320)])
    labels = [[label["text"] for label in drawn["layout"]["annotations"]] for drawn in (wide, narrow)]
    assert labels == [["m0", "m1", "m2", "m3"], ["m0, m1", "m2", "m3"]]


def test_scales_and_numbers_follow_one_rule(page: Page) -> None:
    rng = np.random.default_rng(12)
    pairs: list[tuple[str, dict[str, Any], Any]] = []
    for index in range(400):
        size = 10.0 ** rng.uniform(-9, 9)
        values = size * 10.0 ** rng.normal(0, rng.choice([0.01, 0.5, 3.0]), rng.integers(1, 40))
        values[rng.random(len(values)) < 0.1] = rng.choice([0.0, np.inf, np.nan, size])
        log, clip = bool(index % 2), float(rng.choice([0.0, size])) or None
        value: Any = "error" if index % 5 == 0 else "loss"
        level = Level(size, 0.1 * size, float(10.0 ** rng.normal(0, 2)) * size) if index % 3 == 0 else None
        scale = scale_for(values, value, log, clip, (), level)
        expected = plain({"range": scale.range, "levels": scale.levels(), **scale.ticks()})
        options = {"values": [str(number) for number in values], "value": value, "log": log, "clip": clip}
        options["level"] = level and {"peak": level.peak, "value": level.value}
        options["values"] = [text.replace("inf", "Infinity").replace("nan", "NaN") for text in options["values"]]  # type: ignore[attr-defined]
        pairs.append(("scale", options, expected))
    numbers = [0.0, 1000.0, 1.125, 999.5, 999999.0, 1e6, 1e-5, 9.999e-6, -0.00012345, 2.5e300, math.inf]
    for number in (*numbers, *(10.0 ** rng.uniform(-12, 12, 200))):
        text = "Infinity" if math.isinf(number) else repr(float(number))
        pairs.append(("number", {"value": text}, significant(float(number))))
    check(page, Landscape("none"), pairs)


def test_cells_of_a_matrix_are_painted_by_one_rule(page: Page) -> None:
    rng = np.random.default_rng(5)
    pairs: list[tuple[str, dict[str, Any], Any]] = []
    for value in (*rng.uniform(0, 1.2, 200).tolist(), 0.0, 0.05, math.inf):
        colour = cell_colour(value, 0.9)
        expected = {"colour": list(colour), "ink": cell_ink(colour), "mark": cell_mark(value, None, None, 0.05)}
        options = {"value": "Infinity" if math.isinf(value) else repr(value), "end": 0.9, "tolerance": 0.05}
        pairs.append(("cell", options, expected))
    check(page, Landscape("none"), pairs)
