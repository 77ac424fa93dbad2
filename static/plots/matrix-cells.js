// How a matrix of barriers or rises is painted: colour, ink and mark of each cell.
// The same rules as landscape/figures/matrix_cells.py.

import { style } from './theme.js';

const STOPS = style.maps.loss.stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));

/** The value of the last colour: the highest value, at least four tolerances. */
export function scaleEnd(values, tolerance) {
  return Math.max(style.claim.least_room * tolerance, ...values.filter(Number.isFinite));
}

/** Red, green and blue of a value on a linear scale from 0 to `end`. */
export function cellColour(value, end) {
  const place = Math.min(Math.max(value / end, 0), 1) * (STOPS.length - 1);
  const index = Math.min(Math.floor(place), STOPS.length - 2);
  return STOPS[index].map((low, part) => Math.floor(low + (place - index) * (STOPS[index + 1][part] - low) + 0.5));
}

/** Black or white, whichever has more contrast on a colour: at least 4.5 to 1 (WCAG 2.2, relative luminance). */
export function cellInk(colour) {
  const [red, green, blue] = colour
    .map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  const luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  return (luminance + 0.05) ** 2 > 1.05 * 0.05 ? '#000000' : '#ffffff';
}

/** "within" the tolerance surely, "above" it surely, or "near": the interval contains it. Missing bounds are NaN. */
export function cellMark(value, low, high, tolerance) {
  if ((Number.isNaN(high) ? value : high) <= tolerance) return 'within';
  return (Number.isNaN(low) ? value : low) > tolerance ? 'above' : 'near';
}
