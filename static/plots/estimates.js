// What figures and captions say of an estimated surface: its errors, and where they are larger than asked for.

import { style } from './theme.js';

const LOOK = style.contour.doubtful;

/** The indices of the points whose standard error is larger than asked for: of a loss relative to it. */
export function doubtful(plane, split, value) {
  const { accuracy } = plane.estimate;
  if (accuracy === undefined || !plane.has(split, `${value}_error`)) return [];
  const values = plane.grid(split, value);
  const errors = plane.grid(split, `${value}_error`);
  let low = Infinity;
  let high = -Infinity;
  const known = [];
  values.forEach((number, index) => {
    if (!plane.done[index] || !Number.isFinite(number)) return;
    known.push(index);
    low = Math.min(low, number);
    high = Math.max(high, number);
  });
  const scale = (number) => (value === 'loss' ? Math.max(Math.abs(number), LOOK.negligible * (high - low)) : 1);
  return known.filter((index) => errors[index] > LOOK.factor * accuracy * scale(values[index]));
}

/** Marks on the points whose error is larger than asked for. */
export function doubtfulTrace(plane, split, value) {
  const found = doubtful(plane, split, value);
  if (!found.length) return [];
  const x = found.map((index) => plane.x[index % plane.columns]);
  const y = found.map((index) => plane.y[Math.floor(index / plane.columns)]);
  return [{ type: 'scatter', x, y, name: 'less certain', ...LOOK.trace, hoverinfo: 'skip' }];
}

/** How a surface was estimated, for its caption; null if it is exact. */
export function estimateSentence(plane) {
  const { accuracy, evaluated, note } = plane.estimate;
  if (accuracy === undefined || !plane.isEstimated) return null;
  const percent = (share, digits) => Number((100 * share).toPrecision(digits));
  const sentence =
    `Estimated to ${percent(accuracy, 3)} % of the loss from ${percent(evaluated, 2)} % of all pairs of a sample and a ` +
    'point; paths and verdict are exact. Crosses: less certain than asked for.';
  return note ? `${sentence} ${note[0].toUpperCase()}${note.slice(1)}.` : sentence;
}
