/** Numbers and times as text. */

export const DASH = '–';

const two = (number) => String(Math.floor(number)).padStart(2, '0');
const missing = (value) => value === null || value === undefined || Number.isNaN(Number(value));

/** A loss with three significant digits: 0.470, 123, ∞. */
export function loss(value) {
  if (missing(value)) return DASH;
  const number = Number(value);
  if (!Number.isFinite(number)) return number > 0 ? '∞' : '-∞';
  if (Math.abs(number) < 5e-7) return '0.000';
  return Math.abs(number) >= 100 ? Math.round(number).toLocaleString('en') : plainPrecision(number, 3);
}

/** A share in percent with one decimal: 98.6 %. */
export const percent = (share) => (missing(share) ? DASH : `${(100 * Number(share)).toFixed(1)} %`);

/** A number with this many significant digits, without an exponent if that is short: 0.000168, 1.66, 2.50e-9. */
export function plainPrecision(number, digits) {
  const text = Number(number).toPrecision(digits);
  const size = Math.abs(Number(text));
  if (size === 0 || size < 1e-4 || size >= 1e6) return text;
  return Number(text).toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(size))));
}

/** A span of time: 8 s, 1 min 12 s, 3 h 05 min, 2 days. */
export function duration(seconds) {
  if (missing(seconds)) return DASH;
  const whole = Math.max(0, Math.round(Number(seconds)));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${two(whole % 60)} s`;
  if (whole < 172_800) return `${Math.floor(whole / 3600)} h ${two((whole % 3600) / 60)} min`;
  return `${Math.round(whole / 86_400)} days`;
}

/** A time that is only guessed: less than a minute, about 3 min, about 2 h, about 3 days. */
export function aboutDuration(seconds) {
  if (missing(seconds)) return DASH;
  const minutes = Number(seconds) / 60;
  if (minutes < 1) return 'less than a minute';
  if (minutes < 10) return `about ${Math.round(minutes)} min`;
  if (minutes < 57.5) return `about ${5 * Math.round(minutes / 5)} min`;
  if (minutes < 48 * 60) return `about ${Math.round(minutes / 60)} h`;
  return `about ${Math.round(minutes / 1440)} days`;
}

/** Seconds from one time stamp to another, or to now. */
export const secondsBetween = (start, end) => ((end ? Date.parse(end) : Date.now()) - Date.parse(start)) / 1000;

/** How long ago something was: 12 s ago, 3 h ago, then the day. */
export function ago(iso, now = Date.now()) {
  const seconds = (now - Date.parse(iso)) / 1000;
  if (Number.isNaN(seconds)) return DASH;
  if (seconds < 5) return 'just now';
  if (seconds < 60) return `${Math.round(seconds)} s ago`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.round(seconds / 3600)} h ago`;
  return moment(iso).slice(0, 10);
}

/** A local time stamp to the minute: 2026-02-03 10:12. */
export function moment(iso) {
  const date = new Date(iso);
  if (Number.isNaN(date.getTime())) return DASH;
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-');
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Bytes: 812 B, 93.2 kB, 1.4 MB. */
export function bytes(size) {
  if (missing(size)) return DASH;
  const units = ['B', 'kB', 'MB', 'GB'];
  let value = Number(size);
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1000; unit += 1; }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** "1 minimum", "3 minima". */
export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
