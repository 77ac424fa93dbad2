// Numbers for people: losses with three significant digits, shares in percent with one decimal.

export const MISSING = '–';

/** `value` with so many significant digits, without an exponent where a person would write none. */
export function significant(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-5) return value.toExponential(digits - 1).replace('e+', 'e');
  return trimmed(value.toPrecision(digits));
}

/** A loss in nats: three significant digits, zeros kept, so that columns line up. */
export function lossText(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return MISSING;
  if (!Number.isFinite(value)) return '∞';
  if (Math.abs(value) < 5e-7) return '0.000';
  if (Math.abs(value) >= 1e6) return value.toExponential(2).replace('e+', 'e');
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  const text = value.toPrecision(3);
  return text.includes('e') ? Number(text).toFixed(8).replace(/0+$/, '') : text;
}

/** A barrier in nats, to the thousandth. */
export function barrierText(value) {
  return Number.isFinite(value) ? value.toFixed(3) : lossText(value);
}

/** A share in percent with one decimal. */
export function percentText(value) {
  return Number.isFinite(value) ? `${(100 * value).toFixed(1)} %` : MISSING;
}

/** A loss or an error, as its kind is shown. */
export function valueText(quantity, value) {
  return quantity === 'error' ? percentText(value) : lossText(value);
}

/** "1 min 12 s" for 72. */
export function durationText(seconds) {
  if (!Number.isFinite(seconds)) return MISSING;
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (whole < 86400) return `${Math.floor(whole / 3600)} h ${Math.round((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.round((whole % 86400) / 3600)} h`;
}

export function sizeText(bytes) {
  if (bytes === null || bytes === undefined) return '';
  if (bytes < 1000) return `${bytes} B`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

/** A number as JSON has it: "Infinity" is a word there, null is what was not recorded. */
export function fromJson(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

function trimmed(text) {
  return text.includes('.') && !text.includes('e') ? text.replace(/\.?0+$/, '') : text;
}
