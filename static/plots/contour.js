// The contour of a plane: the surface from above, with its minima, curve, lines and trajectories.

import { coloursOf } from '../colours.js';
import { axisTitles, noteAnnotations, notesOf, roomOf, stretchOf } from './axes.js';
import { barMarks } from './colour-bar-marks.js';
import { doubtfulTrace } from './estimates.js';
import { TRAJECTORY, curvesOf, labelsOf, shownPoints } from './labels.js';
import { significant } from './numbers.js';
import { coarseLattice, isBend, range, sample, straightLines } from './sampling.js';
import { scaleFor } from './scale.js';
import { baseLayout, style, themed } from './theme.js';
import { floorLabel, floorLines, joined, toleranceLabel, toleranceLines } from './tolerance-contour.js';

const LOOK = style.contour;
const LYING_BAR = {
  orientation: 'h',
  x: 0.5,
  xanchor: 'center',
  yref: 'container', // else plotly.js makes room for it once more
  y: 1,
  yanchor: 'top',
  len: 1,
  thickness: 8,
  xpad: 0,
  ypad: 9,
  tickangle: 0,
};

const NARROW_MARGIN = { l: 36, r: 24, t: 48, b: 48 };

/** A figure {data, layout, shape} of one quantity on a plane, equal units on both axes unless a note says otherwise.
 *
 * `view`: {split, value, log, clip, claim, zoom, stretch, mode, colours, scale, narrow, hover}. A scale and a stretch that
 * are given are used instead of the plane's own, so that several surfaces can share them. With a claim the tolerance
 * contour is drawn. Points that are not computed yet stay hatched. With `hover` plotly.js shows the values at the
 * pointer; the dashboard does that itself.
 */
export function contourFigure(plane, view) {
  const { traces, room, xaxis, yaxis, ...parts } = contourParts(plane, view);
  // Both axes have the same unit, and a phone little room.
  if (view.narrow) Object.assign(yaxis, { title: { text: '' }, automargin: false });
  const around = view.narrow ? NARROW_MARGIN : LOOK.margin;
  const margin = { ...around, t: around.t + room };
  const hovermode = view.hover ? 'closest' : false;
  const layout = baseLayout(view.mode, { margin, hovermode, ...parts, xaxis, yaxis });
  const long = ({ range: [from, to] }) => to - from;
  return {
    data: traces,
    layout: { ...layout, dragmode: view.narrow ? false : 'zoom' },
    shape: (yaxis.scaleratio * long(yaxis)) / long(xaxis),
  };
}

/** Traces, annotations, shapes, images and axes of a contour, on the axes x<suffix> and y<suffix>.
 *
 * `room` is how many pixels its notes take above the frame.
 */
export function contourParts(plane, view, suffix = '') {
  const scale = view.scale ?? surfaceScale([plane], view);
  const level = levelOf(plane, view);
  const values = plane.grid(view.split, view.value);
  const stretch = view.stretch ?? stretchOf(plane.extent);
  const where = { xaxis: `x${suffix}`, yaxis: `y${suffix}`, showlegend: false };
  const quiet = view.hover ? {} : { hoverinfo: 'skip' };
  const colours = pointColours(plane, view.colours);
  const lines = level ? toleranceLines(plane, values, level) : [];
  const floor = level ? floorLines(plane, values, level) : [];
  const traces = [
    ...surface(plane, values, scale, view),
    ...doubtfulTrace(plane, view.split, view.value),
    ...tolerance(lines, 'tolerance'),
    ...tolerance(floor, 'floor'),
    ...paths(plane, colours),
    ...points(plane, colours),
  ];
  const label = level ? toleranceLabel(plane, lines, level, scale, view.mode) : [];
  if (floor.length) label.push(...floorLabel(plane, floor, level, scale, view.mode, label));
  const heights = minimaValues(plane, values);
  const notes = notesOf(plane, scale, heights, stretch);
  const lying = view.narrow ? { above: NARROW_MARGIN.t + roomOf(notes) - LYING_BAR.ypad / 2 } : null;
  const marks = () => barMarks(scale, heights, colours, view.mode, { bar: view.bar, lying });
  const [across, up] = axisTitles(plane);
  const ranges = {
    x: view.zoom?.x ?? [plane.x[0], plane.x[plane.columns - 1]],
    y: view.zoom?.y ?? [plane.y[0], plane.y[plane.rows - 1]],
  };
  return {
    traces: traces.map((trace) => ({ ...trace, ...where, ...quiet })),
    annotations: [
      ...label.map((each) => ({ ...each, xref: where.xaxis, yref: where.yaxis })),
      ...labels(plane, colours, view, suffix),
      ...noteAnnotations(notes, view.mode, view.left),
    ],
    shapes: view.bar === false ? [] : marks(),
    images: plane.complete ? [] : [hatching(plane, view.mode, suffix)],
    room: roomOf(notes),
    xaxis: { title: { text: across }, ...LOOK.axis, range: [...ranges.x] },
    yaxis: { title: { text: up }, ...LOOK.axis, range: [...ranges.y], scaleanchor: where.xaxis, scaleratio: stretch },
  };
}

/** The level of the claim that a view shows on a plane, or null. */
export function levelOf(plane, { claim, split, value }) {
  return claim?.level(plane, split, value) ?? null;
}

/** The value at each minimum that is drawn on the plane and lies on it. */
export function minimaValues(plane, values) {
  const shown = Object.entries(shownPoints(plane)).filter(([name]) => !isBend(name) && !plane.isProjected(name));
  const found = shown.map(([name, [x, y]]) => [name, sample(plane, values, x, y)]);
  return Object.fromEntries(found.filter(([, value]) => Number.isFinite(value)));
}

/** The colour scale that planes share, from the lines and curves drawn on them and from the levels of their claims. */
export function surfaceScale(planes, { split, value, log, clip, claim, claims = [claim] }) {
  const grids = planes.map((plane) => plane.grid(split, value));
  const all = grids.length > 1 ? Float64Array.from(grids.flatMap((grid) => [...grid])) : grids[0];
  const levels = planes.flatMap((plane, n) => levelOf(plane, { claim: claims[n], split, value }) ?? []);
  const highest = levels.length ? levels.reduce((one, other) => (other.peak > one.peak ? other : one)) : null;
  const along = planes.flatMap((plane, index) => valuesAlong(plane, grids[index]));
  return scaleFor(all, value, log, clip ?? null, along, highest);
}

/** The values of a surface along all lines and curves drawn on it. */
function valuesAlong(plane, values) {
  const drawn = [...straightLines(plane), ...Object.values(curvesOf(plane))];
  return drawn.flatMap(({ x, y }) => Array.from(x, (across, n) => sample(plane, values, across, y[n])));
}

export function pointColours(plane, colours = {}) {
  return { ...coloursOf(Object.keys(plane.points).filter((name) => !isBend(name))), ...colours };
}

/** Perceptually uniform: equal steps of the value look equally large. */
export function colourScale(quantity) {
  const { stops } = style.maps[quantity];
  return stops.map((colour, index) => [index / (stops.length - 1), colour]);
}

/** All recorded values at each point of some rows and columns, and the template that shows them in real units. */
export function hoverValues(plane, rows, columns) {
  const shown = plane.quantities;
  const grids = shown.map(([split, value]) => plane.grid(split, value));
  const lines = shown.map(([split, value], n) => `${split} ${value} %{customdata[${n}]${style.hover[value]}}`);
  shown.forEach(([split, value], n) => {
    if (!plane.has(split, `${value}_error`)) return;
    lines[n] += ` ± %{customdata[${grids.length}]${style.hover[value]}}`;
    grids.push(plane.grid(split, `${value}_error`));
  });
  return {
    customdata: rows.map((row) => columns.map((column) => grids.map((grid) => grid[row * plane.columns + column]))),
    hovertemplate: `${[style.hover.place, ...lines].join('<br>')}<extra></extra>`,
  };
}

/** Colours that run smoothly with fine contour lines once all is computed, and cells until then. */
function surface(plane, values, scale, view) {
  const heights = Float32Array.from(values, (value) => scale.encode(value));
  const [zmin, zmax] = scale.range;
  const showscale = view.bar !== false;
  const look = { colorscale: colourScale(scale.quantity), zmin, zmax, colorbar: colorbar(scale, view), showscale };
  const [rows, columns] = [range(plane.rows), range(plane.columns)];
  const hover = (down, across) => (view.hover ? hoverValues(plane, down, across) : {});
  const cells = (down, across, more) => ({
    type: 'heatmap',
    ...gridOf(plane, heights, down, across),
    ...hover(down, across),
    hoverongaps: false,
    ...look,
    ...more,
  });
  if (plane.complete) {
    // Contours of a fine grid take plotly.js too long for a live page; lines need no more than every few points.
    const thin = Math.floor(Math.max(plane.rows, plane.columns) / LOOK.fine) + 1;
    const grid = gridOf(plane, heights, range(plane.rows, thin), range(plane.columns, thin));
    const lines = (coloring) => ({ type: 'contour', ...grid, contours: { ...scale.levels(), coloring }, line: LOOK.line });
    if (thin === 1) return [{ ...lines('heatmap'), ...look, ...hover(rows, columns) }];
    return [cells(rows, columns, { zsmooth: LOOK.smooth }), { ...lines('none'), showscale: false, hoverinfo: 'skip' }];
  }
  const lattice = coarseLattice(plane);
  const coarse = lattice ? [cells(lattice.rows, lattice.columns)] : [];
  return [...coarse, cells(rows, columns, { showscale: showscale && !coarse.length })];
}

function colorbar(scale, view) {
  const bar = { ...LOOK.bar, ...view.bar, ...scale.ticks() };
  return view.narrow ? { ...bar, ...LYING_BAR, ...spaced(bar, scale.range) } : bar;
}

/** Labels of a lying bar are wider than their distance: those that would run into the last one are left out. */
function spaced({ tickvals, ticktext }, [low, high]) {
  const last = tickvals.length - 1;
  const kept = tickvals.map((place, index) => index === last || tickvals[last] - place > 0.2 * (high - low));
  return { tickvals: tickvals.filter((_, n) => kept[n]), ticktext: ticktext.filter((_, n) => kept[n]) };
}

/** Coordinates and heights of some rows and columns, as typed arrays that plotly.js reads without copying. */
export function gridOf(plane, heights, rows, columns) {
  const whole = columns.length === plane.columns;
  const row = (index) => heights.subarray(index * plane.columns, (index + 1) * plane.columns);
  const z = rows.map((index) => (whole ? row(index) : Float32Array.from(columns, (column) => row(index)[column])));
  return {
    x: Float64Array.from(columns, (column) => plane.x[column]),
    y: Float64Array.from(rows, (index) => plane.y[index]),
    z,
  };
}

/** The tolerance contour, or that around what is level, dark on a light halo. */
function tolerance(lines, name) {
  if (!lines.length) return [];
  const shared = { type: 'scatter', ...joined(lines), name, mode: 'lines', hoverinfo: 'skip' };
  return [LOOK[`${name}_halo`], LOOK[name]].map((line) => ({ ...shared, line }));
}

/** Straight lines dashed, curves solid, white on a thin dark outline; trajectories in their minimum's colour. */
function paths(plane, colours) {
  const lines = straightLines(plane, 2).flatMap(({ x, y, start, end }) =>
    outlined({ x, y, name: `straight line from ${start} to ${end}` }, LOOK.straight),
  );
  const others = Object.entries(plane.paths).flatMap(([name, { x, y }]) => {
    if (!name.startsWith(TRAJECTORY)) return outlined({ x, y, name: `curve ${name}` }, LOOK.curve);
    const minimum = name.slice(TRAJECTORY.length);
    const marker = { ...LOOK.snapshot, color: colours[minimum] ?? style.white };
    const offsets = plane.offsets[name];
    const far = offsets ? '<br>%{customdata:.3g} off this plane' : '';
    const hovertemplate = `training of ${minimum}, snapshot %{pointNumber}<br>${style.hover.place}${far}<extra></extra>`;
    const more = offsets ? { customdata: offsets } : {};
    return [{ type: 'scatter', x, y, name, mode: 'lines+markers', line: LOOK.trajectory, marker, hovertemplate, ...more }];
  });
  return [...lines, ...others];
}

function outlined(places, line) {
  const shared = { type: 'scatter', ...places, mode: 'lines', hoverinfo: 'skip' };
  return [{ ...shared, line: { ...line, color: style.outline, width: line.width + LOOK.outline } }, { ...shared, line }];
}

function points(plane, colours) {
  return Object.entries(shownPoints(plane)).map(([name, [x, y]]) => {
    const color = colours[name] ?? style.white;
    const look = isBend(name) ? LOOK.bend : LOOK.minimum;
    const off = plane.isProjected(name);
    const marker = off
      ? { ...look, color: LOOK.projected.color, line: { color, width: LOOK.projected.width } }
      : { ...look, color };
    const distance = off ? `<br>projected: ${significant(plane.distances[name])} off the plane` : '';
    const hovertemplate = `<b>${name}</b><br>${style.hover.place}${distance}<extra></extra>`;
    return { type: 'scatter', x: [x], y: [y], name, mode: 'markers', marker, hovertemplate };
  });
}

function labels(plane, colours, view, suffix) {
  const look = themed(style.label, view.mode);
  // On a phone, or among many, there is room for those that lie on the plane only; hovering names the rest.
  const all = Object.entries(labelsOf(plane));
  const few = view.narrow || all.length > style.labels.most;
  const named = all.filter(([name]) => !few || !(isBend(name) || plane.isProjected(name)));
  return named.map(([name, { text, anchor, shift }]) => ({
    ...look,
    x: plane.points[name][0],
    y: plane.points[name][1],
    xref: `x${suffix}`,
    yref: `y${suffix}`,
    text,
    xanchor: anchor[0],
    yanchor: anchor[1],
    xshift: shift[0],
    yshift: shift[1],
    bordercolor: colours[name] ?? look.bordercolor,
  }));
}

/** A hatched ground under the surface, seen where nothing is computed. */
function hatching(plane, mode, suffix) {
  const [width, height] = plane.extent;
  const fields = { ...style.inks[mode], height: Math.max(1, Math.round((600 * height) / width)) };
  const picture = LOOK.hatching.replace(/{(\w+)}/g, (_, name) => fields[name]);
  return {
    source: `data:image/svg+xml;base64,${btoa(picture)}`,
    xref: `x${suffix}`,
    yref: `y${suffix}`,
    x: plane.x[0],
    y: plane.y[plane.rows - 1],
    sizex: width,
    sizey: height,
    sizing: 'stretch',
    layer: 'below',
  };
}
