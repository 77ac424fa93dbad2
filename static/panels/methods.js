/** Pruning methods side by side: a table with the spread over seeds, and accuracy over multiply-adds. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';
import { paretoFigure } from '../plots/pareto.js';
import { Plot } from '../plots/plot.js';

const COLUMNS = [
  ['test_accuracy', 'test accuracy', percent],
  ['accuracy_before_cut', 'before the cut', percent],
  ['accuracy_after_cut', 'after the cut', percent],
  ['train_loss', 'train loss', loss],
  ['zero_groups', 'zero groups', percent],
  ['macs', 'multiply-adds left', percent],
  ['latency_1', 'latency left, 1 sample', percent],
  ['latency_32', 'latency left, 32 samples', percent],
  ['rise', 'rise to SGD', loss],
  ['barrier', 'barrier to SGD', loss],
  ['time', 'time over SGD', (value) => `${value.toFixed(2)}×`],
];

export class MethodsPanel {
  #live;
  #api;
  #theme;

  constructor(live, { api, theme }) {
    this.#live = live;
    this.#api = api;
    this.#theme = theme;
    this.rows = [];
    this.plot = new Plot({ label: 'test accuracy over the multiply-adds left', table: () => this.#table() });
    this.place = element('div');
    this.remarks = element('ul.remarks');
    this.published = element('div');
    this.node = element('section.panel.methods', { hidden: true },
      element('h2', {}, 'Pruning methods'), this.remarks, this.plot.node, this.place, this.published);
  }

  /** Reads the table again; experiments that compare no methods have none. */
  async load() {
    if (!this.#live.experiment.spec.methods || !Object.keys(this.#live.minima).length || this.loading) return;
    this.loading = true;
    try {
      const found = await this.#api.get(`/api/experiments/${this.#live.id}/methods`);
      this.rows = found.rows;
      this.remarks.replaceChildren(...found.remarks.map((text) => element('li', {}, text)));
      this.published.replaceChildren(...(found.published.length ? [publishedTable(found.published)] : []));
      this.draw();
    } catch (error) {
      if (error.status !== 404) throw error; // nothing is computed yet
    } finally {
      this.loading = false;
    }
  }

  draw() {
    this.node.hidden = !this.rows.length;
    if (!this.rows.length) return;
    this.place.replaceChildren(dataTable(this.#table()));
    this.plot.draw(() => paretoFigure(this.rows, { mode: this.#theme.mode }));
  }

  close() {
    this.plot.close();
  }

  #table() {
    const shown = COLUMNS.filter(([column]) => this.rows.some(({ values }) => values[column]));
    return {
      caption: 'pruning methods',
      text: ['network'],
      numbers: shown.map(([, title]) => title),
      rows: this.rows.map(({ name, values }) => [name, ...shown.map(([column, , format]) => cell(values[column], format))]),
    };
  }
}

function cell(spread, format) {
  if (!spread) return '–';
  if (spread.deviation === null) return format(spread.mean);
  return element('span', {}, format(spread.mean), ' ', element('small.soft', {}, `± ${format(spread.deviation)}`));
}

function publishedTable(rows) {
  return element('div', {}, element('h3', {}, 'Published, not ours'), dataTable({
    caption: 'published numbers',
    text: ['method', 'source'],
    numbers: ['accuracy before', 'accuracy', 'multiply-adds left'],
    rows: rows.map((row) => [row.method, row.source, percent(row.baseline_accuracy), percent(row.pruned_accuracy), percent(row.macs)]),
  }));
}
