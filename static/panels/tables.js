/** The numbers of the plots, as content of data tables. */

import { element } from '../elements.js';
import { loss, percent, plainPrecision } from '../format.js';
import { legendLine } from './legend-line.js';
import { inLossUnit } from '../plots/loss-unit.js';
import { barrierText, significant, valueText } from '../plots/numbers.js';
import { range } from '../plots/sampling.js';

const MOST = 41;

/** What a table of minima says of each. */
export const METRICS = ['train loss', 'test loss', 'test accuracy', 'sparsity', 'zero groups'];
export const metricsOf = (final, zeroGroups = percent(final.zero_groups)) =>
  [loss(final.train_loss), loss(final.test_loss), percent(final.test_accuracy), percent(final.sparsity), zeroGroups];

/** A surface thinned to at most 41 rows and columns; the CSV file has all values. */
export function surfaceTable(plane, split, value) {
  const columns = range(plane.columns, Math.ceil(plane.columns / MOST));
  const rows = range(plane.rows, Math.ceil(plane.rows / MOST)).reverse();
  const grid = plane.grid(split, value);
  const cell = (index) => (plane.done[index] ? valueText(value, grid[index]) : '');
  return {
    caption: `${split} ${value} on the plane ${plane.name}: rows are y, columns are x`,
    text: ['y \\ x'],
    numbers: columns.map((column) => significant(plane.x[column])),
    rows: rows.map((row) => [
      significant(plane.y[row]),
      ...columns.map((column) => cell(row * plane.columns + column)),
    ]),
  };
}

/** Values along the paths at each t. `entries`: [{path, label}] */
export function profileTable(entries, split, value) {
  const ts = entries[0]?.path.t ?? [];
  const shown = entries.filter(({ path }) => path[value][split]);
  return {
    caption: `${split} ${value} along the paths`,
    text: ['t'],
    numbers: shown.map(({ label }) => label),
    rows: ts.map((t, index) => [t.toFixed(3), ...shown.map(({ path }) => valueText(value, path[value][split][index]))]),
  };
}

/** Metrics of each epoch. `runs`: [{label, epochs}] */
export function trainingTable(runs) {
  const format = {
    train_loss: loss,
    test_loss: loss,
    train_accuracy: percent,
    test_accuracy: percent,
    sparsity: percent,
    zero_groups: percent,
    threshold: significant,
    angle: significant,
  };
  return {
    caption: 'training, epoch by epoch',
    text: ['minimum'],
    numbers: ['epoch', ...Object.keys(format).map((name) => name.replace('_', ' '))],
    rows: runs.flatMap(({ label, epochs }) =>
      (epochs.epoch ?? []).map((epoch, index) => [
        label,
        String(epoch),
        ...Object.entries(format).map(([name, text]) => text(epochs[name]?.[index] ?? NaN)),
      ]),
    ),
  };
}

/** Metrics of each epoch of the fits. `fits`: [{label, epochs}] */
export function fittingTable(fits) {
  const columns = [...new Set(fits.flatMap(({ epochs }) => Object.keys(epochs)))].filter((name) => name !== 'epoch');
  const title = (name) => name.replace(/^bend(\d+)$/, 'distance of bend $1').replace('_', ' ');
  return {
    caption: 'fitting the curves, epoch by epoch',
    text: ['curve'],
    numbers: ['epoch', ...columns.map(title)],
    rows: fits.flatMap(({ label, epochs }) =>
      (epochs.epoch ?? []).map((epoch, index) => [
        label,
        String(epoch),
        ...columns.map((name) => (name === 'loss' ? loss : significant)(epochs[name]?.[index] ?? NaN)),
      ]),
    ),
  };
}

export function layersTable(minima) {
  return {
    caption: 'groups and parameters that are zero, by layer',
    text: ['minimum', 'layer'],
    numbers: ['groups', 'zero groups', 'parameters', 'zero parameters'],
    rows: minima.flatMap(({ name, layers }) =>
      layers.map((layer) => [
        name,
        layer.name,
        ...[layer.groups, layer.zero_groups, layer.parameters, layer.zero_parameters].map((count) =>
          count.toLocaleString('en'),
        ),
      ]),
    ),
  };
}

/** One row per path: length, barrier, and range of loss and error. */
export function pathsTable(entries) {
  const hasErrors = entries.some(({ path }) => path.error.test?.some(Number.isFinite));
  const ends = (list, text) => (list?.length ? `${text(Math.min(...list))} to ${text(Math.max(...list))}` : '–');
  return {
    caption: 'paths between the minima',
    stacked: true,
    text: ['path'],
    numbers: [inLossUnit('barrier'), 'length', 'train loss', ...(hasErrors ? ['test error'] : [])],
    rows: entries.map(({ path, label, line }) => [
      element('span.named', {}, legendLine(line), label),
      barrierText(path.barrier.train ?? NaN),
      plainPrecision(path.arc.at(-1), 3),
      ends(path.loss.train, loss),
      ...(hasErrors ? [ends(path.error.test, percent)] : []),
    ]),
  };
}
