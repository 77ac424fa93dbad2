/** Adds a plane through any three minima to an experiment that has ended; workers compute it, and it stays. */

import { element } from '../elements.js';

const FEWEST = 3;
const RESOLUTIONS = [11, 21, 41];

export class AddPlane {
  #live;
  #api;
  #onAdded;

  /** `onAdded` is called with the name of the plane once the experiment computes it. */
  constructor(live, { api, readOnly }, onAdded) {
    this.#live = live;
    this.#api = api;
    this.#onAdded = onAdded;
    const { minima } = live.experiment;
    this.allowed = !readOnly && live.experiment.origin === 'computed' && minima.length >= FEWEST;
    this.points = [0, 1, 2].map((place) => element('select', { 'aria-label': `Point ${place + 1} of the plane` },
      minima.map((name, index) => element('option', { value: name, selected: index === place }, name))));
    this.resolution = element('select', { 'aria-label': 'Grid points along each axis' },
      RESOLUTIONS.map((count) => element('option', { value: count, selected: count === 21 }, `${count} × ${count}`)));
    this.button = element('button', { type: 'button', onclick: () => this.#add() }, 'Add the plane');
    this.problem = element('p.wrong', { role: 'alert' });
    this.node = element('section.panel.add-plane', { hidden: true },
      element('h2', {}, 'A plane through three minima'),
      element('div.row', {}, this.points, this.resolution, this.button), this.problem);
  }

  draw() {
    this.node.hidden = !this.allowed || this.#live.active || this.#complete();
  }

  /** Whether three minima, if there are no more, have their plane; also until the planes are loaded. */
  #complete() {
    const { experiment: { minima, planes: names }, planes } = this.#live;
    return minima.length === FEWEST && names.some((name) => minima.every((point) => planes.get(name)?.defining.includes(point) ?? true));
  }

  /** Offers the pair that the user looks at, with a third minimum. */
  choose(pair) {
    const others = [...this.points.map(({ value }) => value), ...this.#live.experiment.minima].filter((name) => !pair.includes(name));
    [...pair, others[0]].forEach((name, place) => (this.points[place].value = name));
  }

  async #add() {
    this.problem.textContent = '';
    this.button.disabled = true;
    try {
      const through = this.points.map(({ value }) => value);
      const body = { through, resolution: Number(this.resolution.value) };
      const { plane } = await this.#api.post(`/api/experiments/${this.#live.id}/planes`, body);
      await this.#live.refresh();
      this.#live.follow();
      this.#onAdded(plane);
    } catch (error) {
      this.problem.textContent = error.message;
    } finally {
      this.button.disabled = false;
    }
  }
}
