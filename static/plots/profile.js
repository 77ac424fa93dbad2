// Loss or error along the paths between minima: the straight line dashed, the fitted curve solid.

import { BAR_ROOM, axis, baseLayout, logTicks } from './theme.js';

/** How people call a path: "curve valley: sgd to altsdp". */
export function pathLabel({ kind, name, start, end }) {
  return `${kind === 'line' ? 'line' : `curve ${name}`}: ${start} to ${end}`;
}

/** Solid for curves, dashed for lines; dotted for a line that ends where an earlier one does. */
export function pathStyle(path, paths, colours) {
  const before = paths.slice(
    0,
    paths.findIndex(({ name }) => name === path.name),
  );
  const straight = before.some(({ kind, end }) => kind === 'line' && end === path.end) ? 'dot' : 'dash';
  const color = colours[path.end] ?? '#7F7F7F';
  return path.kind === 'line' ? { color, width: 1.8, dash: straight } : { color, width: 2.4, dash: 'solid' };
}

/** A figure {data, layout} of one quantity of one split along the paths.
 *
 * `entries`: [{path, line, label}]. The loss is linear unless `log`, since a barrier is a difference. A value that
 * overflowed is drawn at the top of what did not.
 */
export function profileFigure(entries, { split, value, log, mode, narrow, zoom }) {
  const { traces, xaxis, yaxis } = profileParts(entries, { split, value, log, mode, zoom });
  yaxis.title.text = ''; // it stands above the picture
  const margin = { l: 52, r: narrow ? 16 : BAR_ROOM, t: 8, b: 44 };
  return {
    data: traces,
    layout: { ...baseLayout(mode), margin, hovermode: false, xaxis, yaxis, dragmode: narrow ? false : 'zoom' },
  };
}

/** Traces and axes of a profile, on the axes x<suffix> and y<suffix>. */
export function profileParts(entries, { split, value, log, mode, zoom }, suffix = '') {
  const shown = entries.filter(({ path }) => path[value][split]?.some((number) => !Number.isNaN(number)));
  const lists = shown.map(({ path }) => path[value][split]);
  const top = value === 'error' ? 1 : highest(lists);
  const logarithmic = log && value === 'loss';
  const traces = shown.map(({ path, line, label }) => ({
    type: 'scatter',
    mode: 'lines',
    name: label ?? pathLabel(path),
    x: path.t,
    y: path[value][split].map((number) => Math.min(number, top)),
    line,
    hoverinfo: 'skip',
    xaxis: `x${suffix}`,
    yaxis: `y${suffix}`,
  }));
  const title = value === 'error' ? `${split} error` : `${split} loss, nats`;
  const scale = logarithmic ? { type: 'log', ...logTicks(lists) } : { type: 'linear', rangemode: 'tozero' };
  const format =
    value === 'error' ? { tickformat: errorFormat(highest(lists)) } : {};
  return {
    traces,
    xaxis: axis(mode, 't along the path', { range: zoom?.t ?? [0, 1] }),
    yaxis: axis(mode, title, { ...scale, ...format, nticks: 6 }),
  };
}

function errorFormat(top) {
  return top < 0.05 ? '.1%' : '.0%';
}

function highest(lists) {
  let top = -Infinity;
  for (const list of lists) for (const number of list) if (Number.isFinite(number) && number > top) top = number;
  return top === -Infinity ? 1 : top;
}
