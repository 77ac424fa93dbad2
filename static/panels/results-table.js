/** A section that shows one answer of the service about several networks: remarks, a figure, and its numbers as tables. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { Plot } from '../plots/plot.js';

export class ResultsTable {
  #live;
  #shared;
  #about;
  #plot = null;
  #loading = false;
  #outdated = false;

  /**
   * @param {{path: string, title: string, expected: (live) => boolean, table?: (found) => object, more?: (found) => Node[],
   *   figure?: (found, look) => object, pictured?: (found) => boolean, label?: string, note?: string}} about
   *   path: of the experiment's REST resource, and the class of the section; expected: whether to ask for it at all
   */
  constructor(live, shared, about) {
    this.#live = live;
    this.#shared = shared;
    this.#about = about;
    this.found = null;
    if (about.figure) this.#plot = new Plot({ label: about.label, table: () => about.table(this.found) });
    this.remarks = element('ul.remarks');
    this.place = element('div');
    this.node = element(`section.panel.${about.path}`, { hidden: true }, element('h2', {}, about.title), this.remarks,
      this.#plot?.node ?? null, this.place, about.note ? element('p.soft', {}, about.note) : null);
  }

  /** Reads the numbers again; what changes meanwhile is read after that. */
  async load() {
    this.#outdated = true;
    if (this.#loading) return;
    this.#loading = true;
    try {
      while (this.#outdated) await this.#read();
    } finally {
      this.#loading = false;
    }
    this.draw();
  }

  async #read() {
    this.#outdated = false;
    if (!Object.keys(this.#live.minima).length || !this.#about.expected(this.#live)) return;
    try {
      this.found = await this.#shared.api.get(`/api/experiments/${this.#live.id}/${this.#about.path}`);
    } catch (error) {
      if (error.status !== 404) throw error; // nothing is computed yet
    }
  }

  draw() {
    if (!this.found) return;
    const { table, more, figure, pictured } = this.#about;
    const main = table?.(this.found);
    const others = more?.(this.found) ?? [];
    this.node.hidden = !main?.rows.length && !others.length;
    if (this.node.hidden) return;
    this.remarks.hidden = !this.found.remarks?.length;
    this.remarks.replaceChildren(...(this.found.remarks ?? []).map((text) => element('li', {}, text)));
    this.place.replaceChildren(...(main ? [dataTable(main)] : []), ...others);
    if (!figure) return;
    this.#plot.node.hidden = pictured?.(this.found) === false;
    if (!this.#plot.node.hidden) this.#plot.draw((view) => figure(this.found, { ...view, mode: this.#shared.theme.mode }));
  }

  close() {
    this.#plot?.close();
  }
}
