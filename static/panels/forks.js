/** Forks of a run: barrier and rise to the trunk over the epoch of the fork, as a figure and a table. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';
import { forksFigure } from '../plots/forks.js';
import { Plot } from '../plots/plot.js';

const COLUMNS = [
  ['barrier', 'barrier to the trunk', loss],
  ['rise', 'rise to the trunk', loss],
  ['train_loss', 'train loss', loss],
  ['test_accuracy', 'test accuracy', percent],
  ['zero_groups', 'zero groups', percent],
];

export class ForksPanel {
  #live;
  #api;
  #theme;

  constructor(live, { api, theme }) {
    this.#live = live;
    this.#api = api;
    this.#theme = theme;
    this.found = null;
    this.plot = new Plot({ label: 'barrier and rise to the trunk over the epoch of the fork', table: () => this.#table() });
    this.place = element('div');
    this.remarks = element('ul.remarks');
    this.node = element('section.panel.forks', { hidden: true },
      element('h2', {}, 'Forks'), this.remarks, this.plot.node, this.place);
  }

  /** Reads the curves again; experiments without forks have none. */
  async load() {
    if (this.loading || !Object.values(this.#live.minima).some(({ settings }) => settings?.fork)) return;
    this.loading = true;
    try {
      this.found = await this.#api.get(`/api/experiments/${this.#live.id}/forks`);
      this.remarks.replaceChildren(...this.found.remarks.map((text) => element('li', {}, text)));
      this.draw();
    } catch (error) {
      if (error.status !== 404) throw error; // nothing is computed yet
    } finally {
      this.loading = false;
    }
  }

  draw() {
    this.node.hidden = !this.found;
    if (!this.found) return;
    this.place.replaceChildren(dataTable(this.#table()));
    this.plot.draw(() => forksFigure(this.found, { mode: this.#theme.mode }));
  }

  close() {
    this.plot.close();
  }

  #table() {
    const rows = this.found.curves.flatMap(({ kind, points }) => points.map((point) => [
      kind, String(point.epoch), ...COLUMNS.map(([column, , format]) => cell(point[column], format)),
    ]));
    return { caption: 'forks', text: ['fork', 'epoch'], numbers: COLUMNS.map(([, title]) => title), rows };
  }
}

function cell(range, format) {
  if (!range) return '–';
  if (range.low === range.high) return format(range.mean);
  return element('span', {}, format(range.mean), ' ', element('small.soft', {}, `${format(range.low)} to ${format(range.high)}`));
}
