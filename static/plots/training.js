// How the minima came about: small pictures of their training, side by side on one axis of epochs.

import { axis, baseLayout, inks, logTicks } from './theme.js';

export const QUANTITIES = {
  loss: { title: 'loss, nats (test dotted)', columns: { train: 'train_loss', test: 'test_loss' }, log: true },
  accuracy: {
    title: 'accuracy (test dotted)',
    columns: { train: 'train_accuracy', test: 'test_accuracy' },
    percent: true,
  },
  sparsity: { title: 'sparsity (zero parameters)', columns: { '': 'sparsity' }, percent: true, zero: true },
  zero_groups: { title: 'groups that are zero', columns: { '': 'zero_groups' }, percent: true, zero: true },
  threshold: { title: 'accumulated threshold G', columns: { '': 'threshold' }, zero: true },
  angle: { title: 'angle, degrees', columns: { '': 'angle' }, zero: true },
};

const ROW = 208;
const BETWEEN = 64;

/** A figure {data, layout} with a picture for each quantity, so many in a row. `runs`: [{name, label, epochs, color, dash}]. */
export function trainingFigure(runs, { quantities, columns, log, mode, narrow }) {
  const ink = inks(mode);
  const rows = Math.ceil(quantities.length / columns);
  const height = rows * ROW + (rows - 1) * BETWEEN;
  const layout = {
    ...baseLayout(mode),
    margin: { l: narrow ? 48 : 56, r: 8, t: 28, b: 44 },
    hovermode: 'x unified',
    annotations: [],
  };
  layout.dragmode = narrow ? false : 'zoom';
  layout.height = height + layout.margin.t + layout.margin.b;
  const data = [];
  quantities.forEach((quantity, index) => {
    const shown = QUANTITIES[quantity];
    const suffix = index ? String(index + 1) : '';
    const column = index % columns;
    const row = Math.floor(index / columns);
    const gap = 0.055;
    const width = (1 - gap * (columns - 1)) / columns;
    const left = column * (width + gap);
    const top = 1 - (row * (ROW + BETWEEN)) / height;
    const isLog = shown.log && log;
    const lists = runs.flatMap(({ epochs }) => Object.values(shown.columns).map((name) => epochs[name] ?? []));
    const kind = isLog
      ? { type: 'log', ...logTicks(lists) }
      : { type: 'linear', rangemode: shown.zero ? 'tozero' : 'normal', nticks: 6 };
    const last = row === rows - 1 || index + columns >= quantities.length;
    layout[`xaxis${suffix}`] = axis(mode, last ? 'epoch' : '', {
      domain: [left, left + width],
      anchor: `y${suffix}`,
      matches: index ? 'x' : undefined,
      ...epochTicks(runs),
    });
    const format = shown.percent ? { tickformat: '~%' } : {};
    layout[`yaxis${suffix}`] = axis(mode, '', {
      domain: [top - ROW / height, top],
      anchor: `x${suffix}`,
      automargin: false,
      ...kind,
      ...format,
    });
    const font = { size: 12, color: ink.text };
    const place = { x: left, y: top, xref: 'paper', yref: 'paper', xanchor: 'left', yanchor: 'bottom', yshift: 6 };
    layout.annotations.push({ ...place, text: shown.title, showarrow: false, font });
    data.push(...runs.flatMap((run) => curves(run, shown, suffix)));
  });
  return { data, layout };
}

/** There is no half of an epoch: as long as there are few, each has a tick. */
function epochTicks(runs) {
  const last = Math.max(...runs.map(({ epochs }) => epochs.epoch?.at(-1) ?? 1));
  return last <= 6 ? { tick0: 0, dtick: 1 } : { nticks: 6 };
}

function curves({ label, epochs, color, dash }, { columns, percent }, suffix) {
  return Object.entries(columns).flatMap(([split, column]) => {
    const values = epochs[column];
    if (!values?.some((value) => Number.isFinite(value))) return [];
    const number = percent ? ':.1%' : ':.3g';
    return {
      type: 'scatter',
      mode: values.length === 1 ? 'markers' : 'lines',
      x: epochs.epoch ?? values.map((_, index) => index + 1),
      y: values.map((value) => (Number.isFinite(value) ? value : null)),
      line: { color, width: 1.8, dash: split === 'test' ? 'dot' : (dash ?? 'solid') },
      marker: { color, size: 5 },
      name: label,
      hovertemplate: `%{y${number}} ${plain(label)}${split ? `, ${split}` : ''}<extra></extra>`,
      xaxis: `x${suffix}`,
      yaxis: `y${suffix}`,
    };
  });
}

/** Names come from people: plotly.js would read tags and fields in them. */
function plain(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('%{', '% {');
}
