/** A map of four or more minima (three lie in one plane, which has its picture), by their distances in weight space or by the barriers between them; two clicks open a pair. */

import { element } from '../elements.js';
import { significant } from '../plots/numbers.js';
import { minimaMapFigure } from '../plots/minima-map.js';
import { Plot } from '../plots/plot.js';
import { segmented } from './toolbar-controls.js';

export class MinimaMapPanel {
  #live;
  #context;
  #kind = 'distance';
  /** The minimum that was clicked first. */
  #first = null;

  /** @param choose called with the two minima that were clicked */
  constructor(live, { api, theme, colours }, choose) {
    this.#live = live;
    this.#context = { api, theme, colours, choose };
    this.found = null;
    this.choice = segmented({
      label: 'map',
      options: [['distance', 'by distance'], ['barrier', 'by barrier']],
      onchange: (kind) => {
        this.#kind = kind;
        this.draw();
      },
    });
    this.plot = new Plot({ label: 'map of minima', table: () => this.#table() });
    // After each newPlot, plotly.js has forgotten who listens.
    this.plot.onfresh = () => this.plot.canvas.on('plotly_click', ({ points: [{ pointNumber, curveNumber }] }) => {
      if (curveNumber === 0) this.#click(this.found.minima[pointNumber]);
    });
    this.caption = element('p.soft', { 'aria-live': 'polite' });
    this.node = element('section.panel.minima-map', { hidden: true },
      element('div.toolbar', {}, element('h2', {}, 'Map of minima'), this.choice.node), this.plot.node, this.caption);
  }

  /** Reads the map again; there is none while the line between two minima is missing. */
  async load() {
    const { minima, spec } = this.#live.experiment;
    const lines = (minima.length * (minima.length - 1)) / 2;
    if (this.loading || minima.length < 4 || this.#live.contents.lines.length < lines || spec.methods || spec.forks) return;
    this.loading = true;
    try {
      this.found = await this.#context.api.get(`/api/experiments/${this.#live.id}/map`);
      this.draw();
    } catch (error) {
      if (error.status !== 404) throw error; // a line is missing
    } finally {
      this.loading = false;
    }
  }

  draw() {
    this.node.hidden = !this.found;
    if (!this.found) return;
    this.choice.show(this.#kind);
    const { theme, colours } = this.#context;
    const { [this.#kind]: { shown } } = this.found;
    const next = this.#first ? `Click a second minimum to open its pair with ${this.#first}.` : 'Click two minima to open their pair.';
    const caption = `Two dimensions show ${Math.round(100 * shown)} % of the differences. ${next}`;
    if (this.caption.textContent !== caption) this.caption.textContent = caption;
    const pair = this.#first ? [this.#first] : this.#live.verdict?.between;
    this.plot.draw(({ room }) => minimaMapFigure(this.found, { kind: this.#kind, colours, mode: theme.mode, pair, room }));
  }

  #click(name) {
    const { minima } = this.found;
    const pair = this.#first && this.#first !== name ? [this.#first, name].sort((a, b) => minima.indexOf(a) - minima.indexOf(b)) : null;
    this.#first = this.#first ? null : name;
    if (pair) this.#context.choose(pair);
    else this.draw();
  }

  close() {
    this.plot.close();
  }

  #table() {
    const { minima, [this.#kind]: { x, y } } = this.found;
    return {
      caption: 'map of minima', text: ['minimum'], numbers: ['x', 'y'],
      rows: minima.map((name, index) => [name, significant(x[index]), significant(y[index])]),
    };
  }
}
