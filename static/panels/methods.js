/** Pruning methods side by side: a table with the spread over seeds, and accuracy over multiply-adds. */

import { dataTable, noted } from '../components/data-table.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';
import { paretoFigure } from '../plots/pareto.js';
import { ResultsTable } from './results-table.js';

const COLUMNS = [
  ['test_accuracy', 'test accuracy', percent],
  ['train_loss', 'train loss', loss],
  ['zero_groups', 'zero groups', percent],
  ['macs', 'multiply-adds left', percent],
  ['rise', 'rise to SGD', loss],
  ['barrier', 'barrier to SGD', loss],
  ['accuracy_before_cut', 'accuracy before the cut', percent],
  ['accuracy_after_cut', 'after the cut', percent],
  ['latency_1', 'latency left, 1 sample', percent],
  ['latency_32', 'latency left, 32 samples', percent],
  ['time', 'time over SGD', (value) => `${value.toFixed(2)}×`],
];

export const methodsPanel = (live, shared) => new ResultsTable(live, shared, {
  path: 'methods',
  title: 'Pruning methods',
  label: 'test accuracy over the multiply-adds left',
  expected: ({ experiment }) => experiment.spec.methods,
  figure: ({ rows }, look) => paretoFigure(rows, look),
  pictured: ({ rows }) => rows.some(({ values }) => values.macs && values.test_accuracy),
  table: ({ rows }) => {
    const shown = COLUMNS.filter(([column]) => rows.some(({ values }) => values[column]));
    return {
      caption: 'pruning methods',
      text: ['network'],
      numbers: shown.map(([, title]) => title),
      rows: rows.map(({ name, values }) => [name, ...shown.map(([column, , format]) => cell(values[column], format))]),
    };
  },
  more: ({ published }) => (published.length ? [publishedTable(published)] : []),
});

function cell(spread, format) {
  if (!spread) return '–';
  const { mean, deviation } = spread;
  // A share that every seed must reach, such as that of zero groups, has no spread to show.
  return deviation === null || Number.parseFloat(format(deviation)) === 0 ? format(mean) : noted(format(mean), `± ${format(deviation)}`);
}

function publishedTable(rows) {
  return element('div', {}, element('h3', {}, 'Published, not ours'), dataTable({
    caption: 'published numbers',
    text: ['method', 'source'],
    numbers: ['accuracy before', 'accuracy', 'multiply-adds left'],
    rows: rows.map((row) => [row.method, row.source, percent(row.baseline_accuracy), percent(row.pruned_accuracy), percent(row.macs)]),
  }));
}
