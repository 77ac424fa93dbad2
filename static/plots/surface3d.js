// The surface of a plane in three dimensions, its height the value on the scale of the contour.

import { axisTitles, noteAnnotations, notesOf, roomOf, stretchOf } from './axes.js';
import { colourScale, gridOf, hoverValues, levelOf, minimaValues, pointColours, surfaceScale } from './contour.js';
import { TRAJECTORY, labelsOf, shownPoints } from './labels.js';
import { coarseLattice, isBend, range, sample, straightLines } from './sampling.js';
import { baseLayout, style, themed } from './theme.js';
import { joined, toleranceLabel, toleranceLines } from './tolerance-contour.js';

const LOOK = style.surface3d;

/** A figure {data, layout} of the surface with the curve, the lines, the tolerance contour and the named points on it.
 *
 * Points off the plane are left out: they have a height of their own.
 */
export function surfaceFigure(plane, view) {
  const scale = view.scale ?? surfaceScale([plane], view);
  const heights = Float32Array.from(plane.grid(view.split, view.value), (value) => scale.encode(value));
  const at = (x, y) => sample(plane, heights, x, y) + liftOf(scale);
  const colours = pointColours(plane, view.colours);
  const marks = pointMarks(plane, view, scale, colours, at);
  const quiet = view.hover ? {} : { hoverinfo: 'skip' };
  const limit = tolerance(plane, view, scale);
  const over = [...lines(plane, colours, at), ...limit.traces, ...marks.map(({ trace }) => ({ ...trace, ...quiet }))];
  const scene = sceneOf(plane, scale, view);
  scene.annotations = [...marks.map(({ label }) => label), ...limit.labels];
  const heightsOf = minimaValues(plane, plane.grid(view.split, view.value));
  const notes = notesOf(plane, scale, heightsOf, stretchOf(plane.extent));
  const margin = { l: 0, r: 0, t: roomOf(notes), b: 0 };
  const layout = baseLayout(view.mode, { margin, scene, annotations: noteAnnotations(notes, view.mode) });
  return { data: [surface(plane, heights, scale, view), ...over], layout };
}

/** The tolerance contour at its height, with its label. */
function tolerance(plane, view, scale) {
  const level = levelOf(plane, view);
  const found = level ? toleranceLines(plane, plane.grid(view.split, view.value), level) : [];
  if (!found.length) return { traces: [], labels: [] };
  const z = scale.encode(level.value) + liftOf(scale);
  const places = joined(found);
  const trace = { type: 'scatter3d', ...places, z: places.x.map(() => z), mode: 'lines', line: LOOK.tolerance };
  const labels = toleranceLabel(plane, found, level, scale, view.mode);
  return { traces: [{ ...trace, hoverinfo: 'skip' }], labels: labels.map((label) => ({ ...label, z })) };
}

/** The height at which a place of the plane is drawn, for markers that move on the surface. */
export function heightAt(plane, { scale, split, value }, x, y) {
  return sample(plane, plane.grid(split, value), x, y, (height) => scale.encode(height)) + liftOf(scale);
}

/** Lines lie a little above the surface, so that they are not hidden by it. */
function liftOf(scale) {
  return LOOK.lift * (scale.range[1] - scale.range[0]);
}

function surface(plane, heights, scale, view) {
  const thin = Math.floor(Math.max(plane.rows, plane.columns) / LOOK.finest) + 1;
  const lattice = plane.complete ? null : coarseLattice(plane);
  const rows = lattice?.rows ?? range(plane.rows, thin);
  const columns = lattice?.columns ?? range(plane.columns, thin);
  const [cmin, cmax] = scale.range;
  return {
    type: 'surface',
    ...gridOf(plane, heights, rows, columns),
    colorscale: colourScale(scale.quantity),
    cmin,
    cmax,
    showscale: !view.narrow,
    colorbar: { ...LOOK.bar, ...scale.ticks() },
    ...LOOK.surface,
    ...(view.hover ? hoverValues(plane, rows, columns) : { hoverinfo: 'none' }),
  };
}

function lines(plane, colours, at) {
  const straight = straightLines(plane).map(({ x, y }) => ({ x, y, line: LOOK.straight }));
  const others = Object.entries(plane.paths).map(([name, { x, y }]) => {
    const color = colours[name.slice(TRAJECTORY.length)] ?? style.white;
    return { x, y, line: name.startsWith(TRAJECTORY) ? { ...LOOK.trajectory, color } : LOOK.curve };
  });
  return [...straight, ...others].map(({ x, y, line }) => ({
    type: 'scatter3d',
    x,
    y,
    z: Array.from(x, (across, n) => at(across, y[n])),
    mode: 'lines',
    line,
    hoverinfo: 'skip',
  }));
}

function pointMarks(plane, view, scale, colours, at) {
  const look = themed(style.label, view.mode);
  const labels = labelsOf(plane);
  return Object.entries(shownPoints(plane)).flatMap(([name, [x, y]]) => {
    const z = at(x, y) + (LOOK.stand - LOOK.lift) * (scale.range[1] - scale.range[0]);
    if (plane.isProjected(name) || !Number.isFinite(z)) return [];
    const marker = { ...(isBend(name) ? LOOK.bend : LOOK.minimum), color: colours[name] ?? style.white };
    const hovertemplate = `<b>${name}</b><br>${style.hover.place}<extra></extra>`;
    const trace = { type: 'scatter3d', x: [x], y: [y], z: [z], mode: 'markers', marker, hovertemplate };
    const label = { ...look, x, y, z, text: labels[name].text, yshift: LOOK.label_shift };
    return [{ trace, label: { ...label, bordercolor: colours[name] ?? look.bordercolor } }];
  });
}

function sceneOf(plane, scale, view) {
  const [width, depth] = [plane.extent[0], plane.extent[1] * stretchOf(plane.extent)];
  const longest = Math.max(width, depth);
  // On a phone there is room for the first line of a title: where the axis leads.
  const [across, up] = axisTitles(plane, '<br>').map((title) => (view.narrow ? title.split('<br>')[0] : title));
  const side = (text, places) => ({ title: { text }, range: [places[0], places.at(-1)], nticks: 6 });
  const eye = view.camera ?? (view.narrow ? scaled(LOOK.camera.eye, 1.3) : LOOK.camera.eye);
  return {
    aspectmode: 'manual',
    aspectratio: { x: (LOOK.width * width) / longest, y: (LOOK.width * depth) / longest, z: LOOK.height },
    camera: { ...LOOK.camera, eye },
    dragmode: 'turntable',
    xaxis: side(across, plane.x),
    yaxis: side(up, plane.y),
    zaxis: { title: { text: style.titles[scale.quantity] }, ...scale.ticks() },
  };
}

function scaled(vector, factor) {
  return Object.fromEntries(Object.entries(vector).map(([axis, value]) => [axis, factor * value]));
}
