/** Places of the camera over a surface in three dimensions: from above, along the judged line, and over the valley floor. */

import { stretchOf } from './axes.js';
import { straightLines } from './sampling.js';
import { style } from './theme.js';

const LOOK = style.surface3d;

/** @returns {{top, line, floor}} places of the eye; `between` names the minima whose line is meant, if they are on the plane */
export function cameraPresets(plane, between = []) {
  const [across, up] = directionOf(plane, between);
  const { line, floor, top } = LOOK.presets;
  return {
    top,
    line: { x: -line.distance * across, y: -line.distance * up, z: line.height },
    floor: { x: floor.distance * up, y: -floor.distance * across, z: floor.height },
  };
}

/** The direction of the line as it is drawn, of length one. */
function directionOf(plane, between) {
  const lines = straightLines(plane, 2);
  const judged = lines.find(({ start, end }) => between.includes(start) && between.includes(end));
  const { x, y } = judged ?? lines[0] ?? { x: [0, 1], y: [0, 0] };
  const along = [x.at(-1) - x[0], (y.at(-1) - y[0]) * stretchOf(plane.extent)];
  const length = Math.hypot(...along);
  return length > 0 ? along.map((part) => part / length) : [1, 0];
}
