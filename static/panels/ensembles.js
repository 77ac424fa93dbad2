/** Sets of minima as one: the members, the network of their mean weights, and their mean prediction. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';

export class EnsemblesPanel {
  #live;
  #api;

  constructor(live, { api }) {
    this.#live = live;
    this.#api = api;
    this.place = element('div');
    this.node = element('section.panel.ensembles', { hidden: true }, element('h2', {}, 'Averages and ensembles'), this.place,
      element('p.soft', {}, 'BatchNorm statistics of the mean of the weights are computed for it.'));
  }

  /** Reads the sets again; most experiments have none. */
  async load() {
    if (this.loading || !Object.keys(this.#live.minima).length || !this.#live.experiment.spec.ensembles) return;
    this.loading = true;
    try {
      const { items } = await this.#api.get(`/api/experiments/${this.#live.id}/ensembles`);
      this.node.hidden = !items.length;
      this.place.replaceChildren(...items.map(setTable));
    } catch (error) {
      if (error.status !== 404) throw error; // nothing is computed yet
    } finally {
      this.loading = false;
    }
  }
}

function setTable({ name, members, average, ensemble }) {
  const splits = Object.keys(average);
  const row = (title, scores) => [title, ...splits.flatMap((split) => {
    const { loss: value, error } = scores[split];
    return [loss(value), error === null ? '–' : percent(1 - error)];
  })];
  return dataTable({
    caption: `set ${name}`,
    text: [name],
    numbers: splits.flatMap((split) => [`${split} loss`, `${split} accuracy`]),
    rows: [
      ...members.map((member) => row(member.name, member.scores)),
      row('mean of the weights', average),
      row('mean of the predictions', ensemble),
    ],
  });
}
