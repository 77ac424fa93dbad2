// How the minima came about: small pictures of their training, side by side on one axis of epochs.

import { baseLayout, escaped, heading, logAxis, style } from './theme.js';

const LOOK = style.training;
/** What the dashboard shows. */
export const QUANTITIES = ['loss', 'accuracy', 'sparsity', 'zero_groups', 'threshold', 'angle'];

const ROW = 208;
const BETWEEN = 64;
const GAP = 0.055;

/** A figure {data, layout} with a picture for each quantity, as many in a row as there is room for.
 *
 * `runs`: [{label, epochs, color}]; `looks` says what is drawn of each quantity.
 */
export function trainingFigure(runs, { quantities = QUANTITIES, looks = LOOK.quantities, room, log, mode, narrow }) {
  const columns = Math.min(quantities.length, room < 620 ? 1 : room < 940 ? 2 : 3);
  const rows = Math.ceil(quantities.length / columns);
  const height = rows * ROW + (rows - 1) * BETWEEN;
  const margin = { l: narrow ? 48 : 56, r: 8, t: 28, b: 44 };
  const layout = baseLayout(mode, { margin, hovermode: 'x unified', annotations: [], dragmode: narrow ? false : 'zoom' });
  layout.height = height + margin.t + margin.b;
  const width = (1 - GAP * (columns - 1)) / columns;
  const data = quantities.flatMap((quantity, index) => {
    const suffix = index ? String(index + 1) : '';
    const left = (index % columns) * (width + GAP);
    const top = 1 - (Math.floor(index / columns) * (ROW + BETWEEN)) / height;
    const last = index + columns >= quantities.length;
    const { traces, xaxis, yaxis } = trainingParts(runs, quantity, log, suffix, looks);
    const together = { anchor: `y${suffix}`, matches: index ? 'x' : undefined, domain: [left, left + width] };
    layout[`xaxis${suffix}`] = { ...xaxis, ...together, title: { text: last ? style.titles.epoch : '' } };
    layout[`yaxis${suffix}`] = { ...yaxis, anchor: `x${suffix}`, domain: [top - ROW / height, top], automargin: false };
    layout.annotations.push(heading(looks[quantity].title, left, top, mode));
    return traces;
  });
  return { data, layout };
}

/** Traces and axes of one quantity, on the axes x<suffix> and y<suffix>. */
export function trainingParts(runs, quantity, log, suffix = '', looks = LOOK.quantities) {
  const shown = looks[quantity];
  const lists = runs.flatMap(({ epochs }) => Object.values(shown.columns).map((column) => epochs[column] ?? []));
  const linear = { type: 'linear', rangemode: shown.zero ? 'tozero' : 'normal', nticks: 6 };
  return {
    traces: runs.flatMap((run) => curves(run, shown, suffix)),
    xaxis: { title: { text: style.titles.epoch }, ...epochTicks(runs) },
    yaxis: { ...(shown.log && log ? logAxis(lists) : linear), ...(shown.percent ? { tickformat: '~%' } : {}) },
  };
}

/** There is no half of an epoch: as long as there are few, each has a tick. */
function epochTicks(runs) {
  const last = Math.max(...runs.map(({ epochs }) => epochs.epoch?.at(-1) ?? 1));
  return last <= LOOK.few_epochs ? { tick0: 0, dtick: 1 } : { nticks: 6 };
}

function curves({ label, epochs, color }, { columns, percent }, suffix) {
  return Object.entries(columns).flatMap(([split, column]) => {
    const values = epochs[column];
    if (!values?.some((value) => Number.isFinite(value))) return [];
    const number = style.hover[percent ? 'error' : 'loss'];
    return {
      type: 'scatter',
      mode: values.length === 1 ? 'markers' : 'lines',
      x: epochs.epoch ?? values.map((_, index) => index + 1),
      y: values.map((value) => (Number.isFinite(value) ? value : null)),
      line: { color, width: LOOK.width, dash: LOOK.dashes[split] ?? 'solid' },
      marker: { color, size: LOOK.marker },
      name: label,
      hovertemplate: `%{y${number}} ${escaped(label)}${split ? `, ${split}` : ''}<extra></extra>`,
      xaxis: `x${suffix}`,
      yaxis: `y${suffix}`,
    };
  });
}
