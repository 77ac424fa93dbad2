// The contour of a plane: the surface from above, with its minima, curve, lines and trajectories.

import { MAPS, coloursOf } from './colours.js';
import { labelsOf, shownPoints } from './labels.js';
import { coarseLattice, isBend, range, sample, straightLines } from './sampling.js';
import { scaleFor } from './scale.js';
import { BAR_ROOM, OUTLINE, axis, baseLayout, inks } from './theme.js';

const FINE = 161;
const MOST_LABELS = 8;
const TRAJECTORY = 'trajectory:';
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
  ypad: 0,
  tickangle: 0,
};

/** A figure {data, layout} of one quantity on a plane, equal units on both axes.
 *
 * `view`: {split, value, log, clip, zoom, mode, colours, scale, narrow}. A scale that is given is used instead of the
 * plane's own, so that several surfaces can share one. Points that are not computed yet stay hatched.
 */
export function contourFigure(plane, view) {
  const { traces, annotations, images, xaxis, yaxis } = contourParts(plane, view);
  // Both axes have the same unit, and a phone little room.
  if (view.narrow) Object.assign(yaxis, { title: { text: '' }, automargin: false });
  const margin = view.narrow ? { l: 36, r: 24, t: 40, b: 48 } : { l: 52, r: BAR_ROOM, t: 8, b: 48 };
  const layout = { ...baseLayout(view.mode), margin, hovermode: false, annotations, images, xaxis, yaxis };
  return { data: traces, layout: { ...layout, dragmode: view.narrow ? false : 'zoom' } };
}

/** Traces, annotations, images and axes of a contour, on the axes x<suffix> and y<suffix>. */
export function contourParts(plane, view, suffix = '') {
  const scale = view.scale ?? surfaceScale(plane, view);
  const values = plane.grid(view.split, view.value);
  const where = { xaxis: `x${suffix}`, yaxis: `y${suffix}`, hoverinfo: 'skip', showlegend: false };
  const paint = paintOf(plane, view.colours);
  const traces = [...surface(plane, values, scale, view), ...paths(plane, paint), ...points(plane, paint)];
  const frame = { constrain: 'domain', showgrid: false, mirror: true };
  const across = view.zoom?.x ?? [plane.x[0], plane.x[plane.columns - 1]];
  const up = view.zoom?.y ?? [plane.y[0], plane.y[plane.rows - 1]];
  return {
    scale,
    traces: traces.map((trace) => ({ ...trace, ...where })),
    annotations: labels(plane, paint, view, suffix),
    images: plane.complete ? [] : [hatching(plane, view.mode, suffix)],
    xaxis: axis(view.mode, plane.unit, { ...frame, range: [...across] }),
    yaxis: axis(view.mode, plane.unit, { ...frame, range: [...up], scaleanchor: `x${suffix}`, scaleratio: 1 }),
  };
}

/** The colour scale of a plane, wide enough for the lines and curves drawn on it. */
export function surfaceScale(plane, { split, value, log, clip }) {
  const values = plane.grid(split, value);
  return scaleFor(values, value, log, clip ?? null, valuesAlong(plane, values));
}

/** The values of a surface along all lines and curves drawn on it. */
export function valuesAlong(plane, values) {
  const curves = Object.entries(plane.paths).filter(([name]) => !name.startsWith(TRAJECTORY));
  const drawn = [...straightLines(plane), ...curves.map(([, path]) => path)];
  return drawn.flatMap(({ x, y }) => Array.from(x, (across, n) => sample(plane, values, across, y[n])));
}

export function paintOf(plane, colours = {}) {
  return { ...coloursOf(Object.keys(plane.points).filter((name) => !isBend(name))), ...colours };
}

/** Colours that run smoothly with fine contour lines once all is computed, and cells until then. */
function surface(plane, values, scale, view) {
  const heights = encoded(plane, values, scale);
  const [zmin, zmax] = scale.range;
  const style = {
    colorscale: MAPS[scale.quantity],
    zmin,
    zmax,
    colorbar: colorbar(scale, view),
    showscale: view.bar !== false,
  };
  const rows = range(plane.rows);
  const columns = range(plane.columns);
  if (plane.complete) {
    const thin = Math.floor(Math.max(plane.rows, plane.columns) / FINE) + 1;
    const lines = contourLines(plane, heights, range(plane.rows, thin), range(plane.columns, thin), scale);
    if (thin === 1) return [{ ...lines, ...style }];
    // Contours of a fine grid take plotly.js too long for a live page; lines need no more than every few points.
    const quiet = { contours: { ...lines.contours, coloring: 'none' }, showscale: false };
    return [cells(plane, heights, rows, columns, { ...style, zsmooth: 'fast' }), { ...lines, ...quiet }];
  }
  const lattice = coarseLattice(plane);
  const coarse = lattice ? [cells(plane, heights, lattice.rows, lattice.columns, style)] : [];
  return [...coarse, cells(plane, heights, rows, columns, { ...style, showscale: style.showscale && !coarse.length })];
}

function colorbar(scale, view) {
  const ticks = scale.ticks();
  const bar = {
    thickness: 12,
    outlinewidth: 0,
    xpad: 8,
    ypad: 0,
    tickfont: { size: 11, color: inks(view.mode).muted },
    ...view.bar,
  };
  return view.narrow ? { ...bar, ...LYING_BAR, ...spaced(ticks, scale.range) } : { ...bar, ...ticks };
}

/** Labels of a lying bar are wider than their distance: those that would run into the last one are left out. */
function spaced({ tickvals, ticktext }, [low, high]) {
  const last = tickvals.length - 1;
  const kept = tickvals.map((place, index) => index === last || tickvals[last] - place > 0.2 * (high - low));
  return { tickvals: tickvals.filter((_, n) => kept[n]), ticktext: ticktext.filter((_, n) => kept[n]) };
}

function encoded(plane, values, scale) {
  const heights = new Float32Array(values.length);
  for (let index = 0; index < values.length; index++) heights[index] = scale.encode(values[index]);
  return heights;
}

function contourLines(plane, heights, rows, columns, scale) {
  return {
    type: 'contour',
    ...gridOf(plane, heights, rows, columns),
    contours: { ...scale.levels(), coloring: 'heatmap' },
    line: { width: 0.6, color: 'rgba(255,255,255,0.3)' },
  };
}

function cells(plane, heights, rows, columns, style) {
  return { type: 'heatmap', ...gridOf(plane, heights, rows, columns), hoverongaps: false, ...style };
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

/** Straight lines dashed, curves solid, white on a thin dark outline; trajectories in their minimum's colour. */
function paths(plane, paint) {
  const lines = straightLines(plane, 2).flatMap(({ x, y, start, end }) =>
    outlined(x, y, `straight line from ${start} to ${end}`, '6px,5px', 1.6),
  );
  const others = Object.entries(plane.paths).flatMap(([name, { x, y }]) => {
    if (!name.startsWith(TRAJECTORY)) return outlined(x, y, `curve ${name}`, 'solid', 2.6);
    const colour = paint[name.slice(TRAJECTORY.length)] ?? '#ffffff';
    const marker = { size: 4.5, color: colour, line: { color: '#ffffff', width: 0.8 } };
    return [
      {
        type: 'scatter',
        x,
        y,
        name,
        mode: 'lines+markers',
        line: { color: 'rgba(255,255,255,0.8)', width: 1.2 },
        marker,
      },
    ];
  });
  return [...lines, ...others];
}

function outlined(x, y, name, dash, width) {
  const shared = { type: 'scatter', x, y, mode: 'lines', name };
  return [
    { ...shared, line: { color: OUTLINE, width: width + 1.8, dash } },
    { ...shared, line: { color: '#ffffff', width, dash } },
  ];
}

function points(plane, paint) {
  return Object.entries(shownPoints(plane)).map(([name, [x, y]]) => {
    const colour = paint[name] ?? '#ffffff';
    const shape = isBend(name) ? { size: 9, symbol: 'diamond' } : { size: 12, symbol: 'circle' };
    const fill = plane.isProjected(name)
      ? { color: 'rgba(255,255,255,0.9)', line: { color: colour, width: 2.5 } }
      : { color: colour, line: { color: isBend(name) ? OUTLINE : '#ffffff', width: 1.8 } };
    return { type: 'scatter', x: [x], y: [y], name, mode: 'markers', marker: { ...shape, ...fill } };
  });
}

function labels(plane, paint, view, suffix) {
  const ink = inks(view.mode);
  // On a phone, or among many, there is room for those that lie on the plane only; hovering names the rest.
  const all = Object.entries(labelsOf(plane));
  const few = view.narrow || all.length > MOST_LABELS;
  const named = all.filter(([name]) => !few || !(isBend(name) || plane.isProjected(name)));
  return named.map(([name, { text, anchor, shift }]) => ({
    x: plane.points[name][0],
    y: plane.points[name][1],
    xref: `x${suffix}`,
    yref: `y${suffix}`,
    text,
    showarrow: false,
    xanchor: anchor[0],
    yanchor: anchor[1],
    xshift: shift[0],
    yshift: shift[1],
    font: { size: 11, color: ink.text },
    bgcolor: ink.pill,
    bordercolor: paint[name] ?? ink.axis,
    borderwidth: 1,
    borderpad: 2,
  }));
}

/** A hatched ground under the surface, seen where nothing is computed. */
function hatching(plane, mode, suffix) {
  const ink = inks(mode);
  const [width, height] = plane.extent;
  const up = Math.max(1, Math.round((600 * height) / width));
  const picture =
    `<svg xmlns="http://www.w3.org/2000/svg" width="600" height="${up}"><defs><pattern id="h" width="8" height="8" ` +
    `patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect width="8" height="8" fill="${ink.empty}"/>` +
    `<rect width="1.5" height="8" fill="${ink.hatch}"/></pattern></defs><rect width="100%" height="100%" fill="url(#h)"/></svg>`;
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
