// Numbers of figures: ticks, barriers and values as their kind is shown.

import { loss, percent } from '../format.js';
import { style } from './theme.js';

const { digits: DIGITS, plain_from: FROM, plain_below: BELOW } = style.numbers;
const NEGLIGIBLE = 1e-6; // nats that are rounding

/** `value` with three significant digits, without zeros at its end unless it has an exponent. */
export function significant(value, digits = DIGITS) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const size = Math.abs(value);
  if (size !== 0 && (size >= BELOW || size < FROM)) return value.toExponential(digits - 1).replace('e+', 'e');
  return String(Number(value.toPrecision(digits)));
}

/** A barrier in nats, to the thousandth. */
export function barrierText(value) {
  return Number.isFinite(value) ? value.toFixed(3) : loss(value);
}

/** "0.052 to 0.091", "none" without width, nothing where it is not known. */
export function intervalText(low, high) {
  const [from, to] = [low, high].map(fromJson);
  if (Number.isNaN(from) || Number.isNaN(to)) return '';
  if (from === to || to - from < NEGLIGIBLE) return 'none';
  const ends = [from, to].map(barrierText);
  return (ends[0] === ends[1] ? [from, to].map(loss) : ends).join(' to ');
}

/** A loss or an error, as its kind is shown. */
export function valueText(quantity, value) {
  return quantity === 'error' ? percent(value) : loss(value);
}

/** A number as JSON has it: "Infinity" is a word there, null is what was not recorded. */
export function fromJson(value) {
  return value === null || value === undefined ? NaN : Number(value);
}
