// The colour scale of a surface: linear or logarithmic for losses, percent for errors, clipped where detail ends.
// The same rules as landscape/figures/scale.py.

import { significant } from './numbers.js';
import { style } from './theme.js';

const RULES = style.scale;
const TOLERANCE = 1e-9;

/** From real values to what is drawn, between `low` and `high` in real values. */
export class Scale {
  constructor(quantity, log, low, high, cut = false) {
    Object.assign(this, { quantity, log, low, high, cut });
    this.factor = quantity === 'error' ? 100 : 1;
  }

  /** One value as drawn: clipped, then log10 or, for errors, percent; NaN stays NaN. */
  encode(value) {
    const clipped = value < this.low ? this.low : value > this.high ? this.high : value;
    return this.log ? Math.log10(clipped) : clipped * this.factor;
  }

  get range() {
    return [this.encode(this.low), this.encode(this.high)];
  }

  /** How far up the scale a value is, from 0 to 1. */
  share(value) {
    const [low, high] = this.range;
    return (this.encode(value) - low) / (high - low);
  }

  /** Start, end and size of contour levels: a round step, not too many of them. */
  levels() {
    const [low, high] = this.range;
    const size = roundStep((high - low) / RULES.levels);
    return { start: Math.floor(low / size) * size + size, end: high - size / 1e6, size };
  }

  /** Where the colour bar has ticks, as encoded values, and the real values that stand there. */
  ticks() {
    const [low, high] = this.range;
    const values = this.log ? logTicks(this.low, this.high) : this.#evenTicks(low, high);
    let kept = values.map((value) => ({ place: this.encode(value), text: this.label(value) }));
    if (this.cut) {
      kept = kept.filter(({ place }) => place < high - RULES.cut_room * (high - low));
      kept.push({ place: high, text: `≥ ${this.label(this.high)}` });
    }
    return { tickvals: kept.map(({ place }) => place), ticktext: kept.map(({ text }) => text) };
  }

  label(value) {
    return this.quantity === 'error' ? `${significant(100 * value)} %` : significant(value);
  }

  #evenTicks(low, high) {
    const step = roundStep((high - low) / RULES.ticks);
    const first = Math.ceil(low / step - TOLERANCE);
    const last = Math.floor(high / step + TOLERANCE);
    return Array.from({ length: Math.max(0, last - first + 1) }, (_, n) => ((first + n) * step) / this.factor);
  }
}

/** A scale for `values` of one or more surfaces, those `along` the paths drawn on them, and the `level` of a claim.
 *
 * Without a `clip` a linear scale ends a little above the peak of the claim's paths; without a claim, of the paths
 * drawn; without any, at the value that nine tenths stay below. It never ends above a hundred times the level. A
 * logarithmic scale ends at the value that nine tenths stay below, or at the highest point of the paths drawn.
 */
export function scaleFor(values, quantity, log, clip, along = [], level = null) {
  const logarithmic = log && quantity !== 'error';
  const { finite, overflowed } = finiteOf(values);
  if (!finite.length) return new Scale(quantity, logarithmic, ...(logarithmic ? RULES.none : [0, 1]));
  finite.sort();
  const lowest = finite[0];
  const highest = finite[finite.length - 1];
  const end = () => {
    const onPaths = along.filter(Number.isFinite).reduce((top, value) => Math.max(top, value), -Infinity);
    if (logarithmic) return Math.max(percentile(finite), onPaths);
    const peak = level?.peak ?? (onPaths > -Infinity ? onPaths : percentile(finite));
    const cutAt = level?.value ?? lowest + style.claim.tolerance[quantity];
    return Math.min(RULES.headroom * peak, RULES.most_levels * cutAt);
  };
  let high = clip ?? twoDigitsUp(end());
  if (clip === null && (high >= highest || (overflowed && highest <= RULES.near_overflow * high))) high = highest;
  let low = lowest;
  if (logarithmic) {
    const smallest = lowest > 0 ? lowest : (finite.find((value) => value > 0) ?? 0);
    low = Math.max(smallest, high / 10 ** RULES.decades);
  }
  if (!(low * (1 + RULES.flat) < high)) [low, high] = around(high, logarithmic);
  return new Scale(quantity, logarithmic, low, high, overflowed || highest > high * (1 + TOLERANCE));
}

function finiteOf(values) {
  const finite = new Float64Array(values.length);
  let count = 0;
  let overflowed = false;
  for (const value of values) {
    if (Number.isFinite(value)) finite[count++] = value;
    else overflowed ||= value === Infinity;
  }
  return { finite: finite.subarray(0, count), overflowed };
}

/** The level that `share_shown` of sorted values stay below, interpolated between neighbours. */
function percentile(sorted) {
  const place = RULES.share_shown * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return Math.max(0, sorted[below] + (place - below) * (sorted[above] - sorted[below]));
}

function around(value, log) {
  if (log) return value > 0 ? [value / 10, value] : RULES.none;
  return [Math.max(value - 0.5, 0), value + 0.5];
}

/** Powers of ten; where fewer than three fit, also 3, or 2 and 5 between them, or else some round values. */
function logTicks(low, high) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  for (const digits of RULES.tick_digits) {
    const ticks = [];
    for (let power = first; power <= last; power++) for (const digit of digits) ticks.push(Number(`${digit}e${power}`));
    const inside = ticks.filter((tick) => tick >= low * (1 - TOLERANCE) && tick <= high * (1 + TOLERANCE));
    if (inside.length >= 3) return inside;
  }
  return [0, 1, 2, 3].map((n) => low * (high / low) ** (n / 3));
}

function roundStep(step) {
  const power = powerOfTen(Math.floor(Math.log10(step)));
  return RULES.steps.map((factor) => factor * power).find((round) => round >= step * (1 - TOLERANCE));
}

function twoDigitsUp(value) {
  if (value <= 0) return value;
  const unit = powerOfTen(Math.floor(Math.log10(value)) - 1);
  return Math.ceil(value / unit - TOLERANCE) * unit;
}

/** Exactly the number that is written so, which ** is not everywhere. */
function powerOfTen(exponent) {
  return Number(`1e${exponent}`);
}
