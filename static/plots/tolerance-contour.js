// The tolerance contour: where the surface is as high as the higher end of the judged path plus the tolerance.
// The same rules as landscape/figures/tolerance_contour.py, which explains them.

import { roomiest } from './labels.js';
import { coarseLattice, range } from './sampling.js';
import { style, themed } from './theme.js';

const LOOK = style.contour;

/** The contour as lines, each a list of places [x, y]. */
export function toleranceLines(plane, values, level) {
  return level.judged ? linesAt(plane, values, level.value) : [];
}

/** Of a slope: the contour around what is level with its foot. */
export function floorLines(plane, values, level) {
  return typeof level.floor === 'number' ? linesAt(plane, values, level.floor) : [];
}

function linesAt(plane, values, height) {
  const thin = Math.floor(Math.max(plane.rows, plane.columns) / LOOK.fine) + 1;
  const lattice = plane.complete ? null : coarseLattice(plane);
  const rows = lattice?.rows ?? range(plane.rows, thin);
  const columns = lattice?.columns ?? range(plane.columns, thin);
  const grid = rows.map((row) => columns.map((column) => values[row * plane.columns + column]));
  return levelLines(columns.map((column) => plane.x[column]), rows.map((row) => plane.y[row]), grid, height);
}

/** The label of the contour, where it has most room on the line around the claim. */
export function toleranceLabel(plane, lines, level, scale, mode) {
  return labelOn(plane, lines, `tolerance: ${scale.quantity} ≤ ${scale.label(level.value)}`, mode);
}

/** The label of the contour around what is level, clear of other labels. */
export function floorLabel(plane, lines, level, scale, mode, others) {
  return labelOn(plane, lines, `level: ${scale.quantity} ≤ ${scale.label(level.floor)}`, mode, others);
}

function labelOn(plane, lines, text, mode, others = []) {
  if (!lines.length) return [];
  const beside = others.map((other) => [[other.x, other.y], other.text]);
  const [x, y] = roomiest(plane, text, labelledLine(plane, lines), beside);
  return [{ ...themed(style.label, mode), x, y, text, xanchor: 'center', yanchor: 'middle' }];
}

/** The line for a label: the nearest to the plane's first point, of those at least half as long as the longest. */
function labelledLine({ points, defining }, lines) {
  const longest = Math.max(...lines.map((line) => line.length));
  const long = lines.filter((line) => 2 * line.length >= longest).sort((one, other) => other.length - one.length);
  const first = defining.find((name) => name in points);
  if (!first) return long[0];
  const [across, up] = points[first];
  const away = long.map((line) => Math.min(...line.map(([x, y]) => Math.hypot(x - across, y - up))));
  return long[away.indexOf(Math.min(...away))];
}

/** Several lines as {x, y}, with NaN between them. */
export function joined(lines) {
  const places = lines.flatMap((line, index) => (index ? [[NaN, NaN], ...line] : line));
  return { x: places.map(([x]) => x), y: places.map(([, y]) => y) };
}

/** Lines along which bilinear values (a list of rows) equal a level; none through cells that are not computed. */
export function levelLines(x, y, values, level) {
  const segments = segmentsOf(values, level);
  const neighbours = new Map();
  segments.forEach((ends, index) => {
    for (const edge of ends) neighbours.set(edge, [...(neighbours.get(edge) ?? []), index]);
  });
  const used = segments.map(() => false);
  const follow = (first, start) => {
    const chain = [start];
    for (let index = first; !used[index]; ) {
      used[index] = true;
      const [one, other] = segments[index];
      const edge = chain.at(-1) === one ? other : one;
      chain.push(edge);
      index = neighbours.get(edge).find((near) => !used[near]) ?? index;
    }
    return chain;
  };
  const open = segments.flatMap((ends, index) =>
    ends.filter((edge) => neighbours.get(edge).length === 1).map((edge) => [index, edge]),
  );
  const loops = segments.map(([edge], index) => [index, edge]);
  const chains = [...open, ...loops].flatMap(([index, edge]) => (used[index] ? [] : [follow(index, edge)]));
  return chains.map((chain) => chain.map((edge) => crossing(x, y, values, level, edge.split(' '))));
}

/** Pairs of edges that the contour crosses, cell by cell; an edge is "row column upwards". */
function segmentsOf(values, level) {
  const segments = [];
  for (let row = 0; row + 1 < values.length; row++) {
    for (let column = 0; column + 1 < values[row].length; column++) {
      const corners = [values[row][column], values[row][column + 1], values[row + 1][column + 1], values[row + 1][column]];
      if (corners.some(Number.isNaN)) continue;
      const ring = corners.map((value) => value > level);
      const edges = [`${row} ${column} 0`, `${row} ${column + 1} 1`, `${row + 1} ${column} 0`, `${row} ${column} 1`];
      let crossed = edges.filter((_, n) => ring[n] !== ring[(n + 1) % 4]);
      if (crossed.length === 4) {
        // At a saddle the middle decides which two corners are cut off.
        const middle = (corners[0] + corners[1] + corners[2] + corners[3]) / 4 > level;
        if (middle !== ring[0]) crossed = [crossed[0], crossed[3], crossed[1], crossed[2]];
      }
      for (let n = 0; n < crossed.length; n += 2) segments.push([crossed[n], crossed[n + 1]]);
    }
  }
  return segments;
}

function crossing(x, y, values, level, edge) {
  const [row, column, upwards] = edge.map(Number);
  const ends = [[row, column], upwards ? [row + 1, column] : [row, column + 1]];
  const at = ([down, across]) => values[down][across];
  // From the lower end, which is finite: the upper one may be infinite.
  const [low, high] = at(ends[0]) <= at(ends[1]) ? ends : [ends[1], ends[0]];
  const share = (level - at(low)) / (at(high) - at(low));
  return [
    x[low[1]] + share * (x[high[1]] - x[low[1]]),
    y[low[0]] + share * (y[high[0]] - y[low[0]]),
  ];
}
