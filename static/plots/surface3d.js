// The surface of a plane in three dimensions, its height the value on the scale of the contour.

import { MAPS } from './colours.js';
import { gridOf, paintOf, surfaceScale } from './contour.js';
import { labelsOf, shownPoints } from './labels.js';
import { coarseLattice, isBend, range, sample, straightLines } from './sampling.js';
import { baseLayout, inks, sceneAxis } from './theme.js';

const HEIGHT = 0.6;
const LIFT = 0.012;
const FINEST = 201;
const TRAJECTORY = 'trajectory:';

export const CAMERA = { eye: { x: -0.65, y: -1.15, z: 1.85 }, center: { x: 0, y: 0, z: -0.2 }, up: { x: 0, y: 0, z: 1 } };

/** A figure {data, layout} of the relief with the curve, the lines and the named points lying on it.
 *
 * Points off the plane are left out: they have a height of their own.
 */
export function reliefFigure(plane, view) {
  const scale = view.scale ?? surfaceScale(plane, view);
  const heights = Float32Array.from(plane.grid(view.split, view.value), (value) => scale.encode(value));
  const lift = LIFT * (scale.range[1] - scale.range[0]);
  const at = (x, y) => sample(plane, heights, x, y) + lift;
  const marks = pointMarks(plane, view, at);
  const data = [relief(plane, heights, scale, view), ...lines(plane, view, at), ...marks.map(({ trace }) => trace)];
  const layout = {
    ...baseLayout(view.mode),
    margin: { l: 0, r: 0, t: 0, b: 0 },
    scene: sceneOf(
      plane,
      scale,
      view,
      marks.map(({ label }) => label),
    ),
  };
  return { data, layout };
}

/** The height at which a place of the plane is drawn, for markers that move on the relief. */
export function heightAt(plane, view, x, y) {
  const scale = view.scale ?? surfaceScale(plane, view);
  return (
    scale.encode(sample(plane, plane.grid(view.split, view.value), x, y)) + LIFT * (scale.range[1] - scale.range[0])
  );
}

function relief(plane, heights, scale, view) {
  const thin = Math.floor(Math.max(plane.rows, plane.columns) / FINEST) + 1;
  const lattice = plane.complete ? null : coarseLattice(plane);
  const rows = lattice?.rows ?? range(plane.rows, thin);
  const columns = lattice?.columns ?? range(plane.columns, thin);
  const [cmin, cmax] = scale.range;
  return {
    type: 'surface',
    ...gridOf(plane, heights, rows, columns),
    colorscale: MAPS[scale.quantity],
    cmin,
    cmax,
    showscale: !view.narrow,
    colorbar: {
      ...scale.ticks(),
      thickness: 12,
      outlinewidth: 0,
      len: 0.7,
      tickfont: { size: 11, color: inks(view.mode).muted },
    },
    lighting: { ambient: 0.75, diffuse: 0.5, specular: 0.05, roughness: 0.9 },
    contours: { x: { highlight: false }, y: { highlight: false }, z: { highlight: false } },
    hoverinfo: 'none',
  };
}

function lines(plane, view, at) {
  const paint = paintOf(plane, view.colours);
  const straight = straightLines(plane).map(({ x, y }) => ({ x, y, color: '#ffffff', width: 3, dash: 'dash' }));
  const others = Object.entries(plane.paths).map(([name, { x, y }]) =>
    name.startsWith(TRAJECTORY)
      ? { x, y, color: paint[name.slice(TRAJECTORY.length)] ?? '#ffffff', width: 3, dash: 'solid' }
      : { x, y, color: '#ffffff', width: 6, dash: 'solid' },
  );
  return [...straight, ...others].map(({ x, y, ...line }) => ({
    type: 'scatter3d',
    x,
    y,
    z: Array.from(x, (across, n) => at(across, y[n])),
    mode: 'lines',
    line,
    hoverinfo: 'skip',
  }));
}

function pointMarks(plane, view, at) {
  const ink = inks(view.mode);
  const paint = paintOf(plane, view.colours);
  const labels = labelsOf(plane);
  return Object.entries(shownPoints(plane)).flatMap(([name, [x, y]]) => {
    const z = at(x, y);
    if (plane.isProjected(name) || !Number.isFinite(z)) return [];
    const shape = isBend(name) ? { size: 4, symbol: 'diamond' } : { size: 6, symbol: 'circle' };
    const marker = { ...shape, color: paint[name] ?? '#ffffff', line: { color: '#ffffff', width: 1.5 } };
    const trace = { type: 'scatter3d', x: [x], y: [y], z: [z], mode: 'markers', marker, hoverinfo: 'skip' };
    const style = {
      bgcolor: ink.pill,
      bordercolor: paint[name] ?? ink.axis,
      borderwidth: 1,
      borderpad: 2,
      showarrow: false,
    };
    return [
      { trace, label: { x, y, z, text: labels[name].text, yshift: 18, font: { size: 11, color: ink.text }, ...style } },
    ];
  });
}

function sceneOf(plane, scale, view, annotations) {
  const [width, depth] = plane.extent;
  const longest = Math.max(width, depth);
  const across = [plane.x[0], plane.x[plane.columns - 1]];
  const up = [plane.y[0], plane.y[plane.rows - 1]];
  const { tickvals, ticktext } = scale.ticks();
  const eye = view.camera ?? (view.narrow ? scaled(CAMERA.eye, 1.3) : CAMERA.eye);
  return {
    aspectmode: 'manual',
    aspectratio: { x: (1.3 * width) / longest, y: (1.3 * depth) / longest, z: HEIGHT },
    camera: { ...CAMERA, eye },
    dragmode: 'turntable',
    xaxis: sceneAxis(view.mode, plane.unit, { range: across, nticks: 6 }),
    yaxis: sceneAxis(view.mode, plane.unit, { range: up, nticks: 6 }),
    zaxis: sceneAxis(view.mode, scale.quantity === 'error' ? 'error' : 'loss, nats', { tickvals, ticktext }),
    annotations,
  };
}

function scaled(vector, factor) {
  return Object.fromEntries(Object.entries(vector).map(([axis, value]) => [axis, factor * value]));
}
