/** Paths on a plane: where a path is at t, and which t a place of the plane is nearest to. */

import { curvesOf } from './labels.js';
import { straightLines } from './sampling.js';

/** The curves and lines that are drawn on a plane, as {name, x, y}; names are those of the profile. */
export function drawnPaths(plane) {
  const lines = straightLines(plane).map(({ start, end, x, y }) => ({
    names: [`${start}-${end}`, `${end}-${start}`],
    x,
    y,
  }));
  const curves = Object.entries(curvesOf(plane));
  return [...curves.map(([name, { x, y }]) => ({ names: [name], x, y })), ...lines];
}

/** The place of a path at t, between its points. */
export function placeAt({ x, y }, t) {
  const position = Math.min(1, Math.max(0, t)) * (x.length - 1);
  const before = Math.min(Math.floor(position), x.length - 2);
  const share = position - before;
  return { x: x[before] + share * (x[before + 1] - x[before]), y: y[before] + share * (y[before + 1] - y[before]) };
}

/** The path that comes nearest to a place, and its t; null where all are farther than `reach`. */
export function nearestPath(paths, place, reach) {
  let best = null;
  for (const path of paths) {
    for (let index = 0; index < path.x.length; index++) {
      const distance = Math.hypot(path.x[index] - place.x, path.y[index] - place.y);
      if (distance <= reach && (!best || distance < best.distance))
        best = { path, t: index / (path.x.length - 1), distance };
    }
  }
  return best;
}

/** The value of a list over t at any t, between neighbours. */
export function valueAt(list, ts, t) {
  let after = ts.findIndex((value) => value >= t);
  if (after < 0) after = ts.length - 1;
  if (after === 0) return list[0];
  const share = (t - ts[after - 1]) / (ts[after] - ts[after - 1]);
  return share >= 1 ? list[after] : share <= 0 ? list[after - 1] : (1 - share) * list[after - 1] + share * list[after];
}
