// The surface of a plane in three dimensions, its height the value on the scale of the contour.

import { TRAJECTORY, colourScale, gridOf, hoverValues, pointColours, surfaceScale } from './contour.js';
import { labelsOf, shownPoints } from './labels.js';
import { coarseLattice, isBend, range, sample, straightLines } from './sampling.js';
import { baseLayout, escaped, style, themed } from './theme.js';

const LOOK = style.surface3d;

/** A figure {data, layout} of the surface with the curve, the lines and the named points lying on it.
 *
 * Points off the plane are left out: they have a height of their own.
 */
export function surfaceFigure(plane, view) {
  const scale = view.scale ?? surfaceScale([plane], view);
  const heights = Float32Array.from(plane.grid(view.split, view.value), (value) => scale.encode(value));
  const at = (x, y) => sample(plane, heights, x, y) + liftOf(scale);
  const colours = pointColours(plane, view.colours);
  const marks = pointMarks(plane, view, colours, at);
  const quiet = view.hover ? {} : { hoverinfo: 'skip' };
  const over = [...lines(plane, colours, at), ...marks.map(({ trace }) => ({ ...trace, ...quiet }))];
  const scene = sceneOf(plane, scale, view);
  scene.annotations = marks.map(({ label }) => label);
  const layout = baseLayout(view.mode, { margin: { l: 0, r: 0, t: 0, b: 0 }, scene });
  return { data: [surface(plane, heights, scale, view), ...over], layout };
}

/** The height at which a place of the plane is drawn, for markers that move on the surface. */
export function heightAt(plane, { scale, split, value }, x, y) {
  return scale.encode(sample(plane, plane.grid(split, value), x, y)) + liftOf(scale);
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

function pointMarks(plane, view, colours, at) {
  const look = themed(style.label, view.mode);
  const labels = labelsOf(plane);
  return Object.entries(shownPoints(plane)).flatMap(([name, [x, y]]) => {
    const z = at(x, y);
    if (plane.isProjected(name) || !Number.isFinite(z)) return [];
    const marker = { ...(isBend(name) ? LOOK.bend : LOOK.minimum), color: colours[name] ?? style.white };
    const hovertemplate = `<b>${name}</b><br>${style.hover.place}<extra></extra>`;
    const trace = { type: 'scatter3d', x: [x], y: [y], z: [z], mode: 'markers', marker, hovertemplate };
    const label = { ...look, x, y, z, text: labels[name].text, yshift: LOOK.label_shift };
    return [{ trace, label: { ...label, bordercolor: colours[name] ?? look.bordercolor } }];
  });
}

function sceneOf(plane, scale, view) {
  const [width, depth] = plane.extent;
  const longest = Math.max(width, depth);
  const side = (places) => ({ title: { text: escaped(plane.unit) }, range: [places[0], places.at(-1)], nticks: 6 });
  const eye = view.camera ?? (view.narrow ? scaled(LOOK.camera.eye, 1.3) : LOOK.camera.eye);
  return {
    aspectmode: 'manual',
    aspectratio: { x: (LOOK.width * width) / longest, y: (LOOK.width * depth) / longest, z: LOOK.height },
    camera: { ...LOOK.camera, eye },
    dragmode: 'turntable',
    xaxis: side(plane.x),
    yaxis: side(plane.y),
    zaxis: { title: { text: style.titles[scale.quantity] }, ...scale.ticks() },
  };
}

function scaled(vector, factor) {
  return Object.fromEntries(Object.entries(vector).map(([axis, value]) => [axis, factor * value]));
}
