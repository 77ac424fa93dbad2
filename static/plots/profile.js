// Loss or error along the paths between minima: the straight line dashed, the fitted curve solid.

import { baseLayout, logAxis, quantityTitle, style } from './theme.js';

const LOOK = style.profile;

/** How people call a path: "curve valley: sgd to altsdp". */
export function pathLabel({ kind, name, start, end }) {
  return `${['line', 'aligned'].includes(kind) ? 'line' : `curve ${name}`}: ${start} to ${end}${kind === 'aligned' ? ', aligned' : ''}`;
}

/** Solid for curves, dashed for lines, dotted where an earlier one has the same end; thin for aligned lines. */
export function pathStyle(path, paths, colours) {
  const before = paths.slice(0, paths.findIndex(({ name }) => name === path.name));
  const again = before.some(({ kind, end }) => kind === 'line' && end === path.end);
  const look = path.kind === 'aligned' ? LOOK.aligned_line : path.kind !== 'line' ? LOOK.curve : again ? LOOK.later_line : LOOK.line;
  return { ...look, color: colours[path.end] ?? style.unnamed };
}

/** All paths with their look. */
export function profileEntries(paths, colours) {
  return paths.map((path) => ({ path, label: pathLabel(path), line: pathStyle(path, paths, colours) }));
}

/** A figure {data, layout} of one quantity of one split along the paths.
 *
 * `entries`: [{path, line, label}]. The loss is linear unless `log`, since a barrier is a difference. A value that
 * overflowed is drawn at the top of what did not.
 */
export function profileFigure(entries, { split, value, log, mode, narrow }) {
  const { traces, xaxis, yaxis } = profileParts(entries, { split, value, log });
  yaxis.title.text = ''; // it stands above the picture
  const margin = { l: 52, r: narrow ? 16 : style.contour.margin.r, t: 8, b: 44 };
  const layout = { margin, hovermode: false, xaxis, yaxis, dragmode: narrow ? false : 'zoom' };
  return { data: traces, layout: baseLayout(mode, layout) };
}

/** A figure of the loss above the error of another split, with a legend, on one axis of t. */
export function profilePairFigure(entries, { splits: [lossSplit, errorSplit], log, mode }) {
  const [top, above, below, bottom] = LOOK.rows;
  const upper = profileParts(entries, { split: lossSplit, value: 'loss', log, hover: true });
  if (!entries.some(({ path }) => Object.values(path.error).some((list) => list.some((number) => !Number.isNaN(number))))) {
    const { traces, ...axes } = upper;
    return { data: traces, layout: baseLayout(mode, { ...LOOK.pair, ...axes }) };
  }
  const lower = profileParts(entries, { split: errorSplit, value: 'error', hover: true }, '2');
  const layout = baseLayout(mode, {
    ...LOOK.pair,
    xaxis: { ...upper.xaxis, title: { text: '' }, anchor: 'y', matches: 'x2', showticklabels: false },
    yaxis: { ...upper.yaxis, anchor: 'x', domain: [above, top] },
    xaxis2: { ...lower.xaxis, anchor: 'y2' },
    yaxis2: { ...lower.yaxis, anchor: 'x2', domain: [bottom, below] },
  });
  return { data: [...upper.traces, ...lower.traces], layout };
}

/** Traces and axes of a profile, on the axes x<suffix> and y<suffix>. */
export function profileParts(entries, { split, value, log, hover }, suffix = '') {
  const shown = entries.filter(({ path }) => path[value][split]?.some((number) => !Number.isNaN(number)));
  const lists = shown.map(({ path }) => path[value][split]);
  const top = highest(lists);
  const traces = shown.map(({ path, line, label }) => ({
    type: 'scatter',
    mode: 'lines',
    name: label,
    legendgroup: label,
    showlegend: value === 'loss',
    x: path.t,
    y: path[value][split].map((number) => Math.min(number, top)),
    line,
    xaxis: `x${suffix}`,
    yaxis: `y${suffix}`,
    ...(hover ? hoverText(path[value][split], split, value, label) : { hoverinfo: 'skip' }),
  }));
  const scale = log && value === 'loss' ? logAxis(lists) : { type: 'linear', rangemode: 'tozero', nticks: 6 };
  const format = value === 'error' ? { tickformat: top < LOOK.small_error ? '.1%' : '.0%' } : {};
  const t = entries[0]?.path.t ?? [0, 1];
  return {
    traces,
    xaxis: { title: { text: style.titles.t }, range: [t[0], t.at(-1)] },
    yaxis: { title: { text: quantityTitle(split, value) }, ...scale, ...format },
  };
}

function hoverText(customdata, split, value, label) {
  return { customdata, hovertemplate: `%{customdata${style.hover[value]}} ${split} ${value}, ${label}<extra></extra>` };
}

function highest(lists) {
  let top = -Infinity;
  for (const list of lists) for (const number of list) if (Number.isFinite(number) && number > top) top = number;
  return top === -Infinity ? 1 : top;
}
