/** Forks of a run: barrier and rise to the trunk over the epoch of the fork, as a figure and a table. */

import { noted } from '../components/data-table.js';
import { loss, percent } from '../format.js';
import { forksFigure } from '../plots/forks.js';
import { ResultsTable } from './results-table.js';

const COLUMNS = [
  ['barrier', 'barrier to the trunk', loss],
  ['rise', 'rise to the trunk', loss],
  ['train_loss', 'train loss', loss],
  ['test_accuracy', 'test accuracy', percent],
  ['zero_groups', 'zero groups', percent],
];

export const forksPanel = (live, shared) => new ResultsTable(live, shared, {
  path: 'forks',
  title: 'Forks',
  label: 'barrier and rise to the trunk over the epoch of the fork',
  expected: ({ minima }) => Object.values(minima).some(({ settings }) => settings?.fork),
  figure: forksFigure,
  table: ({ curves }) => ({
    caption: 'forks',
    text: ['fork', 'epoch'],
    numbers: COLUMNS.map(([, title]) => title),
    rows: curves.flatMap(({ kind, points }) => points.map((point) => [
      kind, String(point.epoch), ...COLUMNS.map(([column, , format]) => cell(point[column], format)),
    ])),
  }),
});

function cell(range, format) {
  if (!range) return '–';
  const { mean, low, high } = range;
  return low === high ? format(mean) : noted(format(mean), `${format(low)} to ${format(high)}`);
}
