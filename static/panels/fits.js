/** How the curves were fitted, epoch by epoch, also while they are. */

import { element } from '../elements.js';
import { counted, loss } from '../format.js';
import { fittingFigure } from '../plots/fitting.js';
import { Plot } from '../plots/plot.js';
import { profileEntries } from '../plots/profile.js';
import { legendLine } from './legend-line.js';
import { fittingTable } from './tables.js';
import { toggle } from './toolbar-controls.js';

export class FittingPanel {
  #live;
  #context;

  constructor(live, { urlState, theme, colours }) {
    this.#live = live;
    this.#context = { theme, colours };
    this.log = toggle({ label: 'log loss', onchange: (on) => urlState.push({ flog: on ? null : '0' }) });
    this.legend = element('div.legend');
    this.words = element('p.soft.caption');
    this.plot = new Plot({
      bare: true,
      label: 'mean loss over each curve and distance of its bends from the straight line, over the epochs of the fit',
      table: () => fittingTable(this.#fits),
    });
    this.blank = element('div.blanks', {}, element('div.blank'), element('div.blank'));
    this.node = element('section.panel.fitting', {},
      element('div.toolbar', {}, element('h2', {}, 'Fitting the curves'), this.log.node, this.legend, this.plot.button),
      this.plot.node,
      this.blank,
      this.words);
  }

  get #fits() {
    const { colours } = this.#context;
    const entries = profileEntries(this.#live.fits, colours);
    return entries.map(({ path, label, line }) => ({ label, line, epochs: path.fit, color: line.color, path }));
  }

  update(view) {
    this.view = view;
    this.log.show(view.fitLog);
    this.draw();
  }

  draw() {
    const fits = this.#fits.filter(({ epochs }) => epochs.epoch?.length);
    const { active, expectedCurves } = this.#live;
    const there = fits.length > 0;
    this.node.hidden = !there && !(active && expectedCurves.length);
    this.plot.node.hidden = !there;
    this.plot.button.hidden = !there;
    this.blank.hidden = there;
    this.words.textContent = this.#words(there);
    if (!there) return;
    this.legend.replaceChildren(...fits.map(({ label, line }) => element('span.named', {}, legendLine(line), label)));
    this.plot.draw(({ room, narrow }) =>
      fittingFigure(fits, { room, narrow, log: this.view.fitLog, mode: this.#context.theme.mode }),
    );
  }

  close() {
    this.plot.close();
  }

  #words(there) {
    const now = Object.entries(this.#live.fitting).map(
      ([name, { epoch, epochs, loss: value }]) =>
        `Curve ${name}: epoch ${Math.min(epoch + 1, epochs)} of ${epochs}, loss of the last batch ${loss(value)}.`,
    );
    if (this.#live.active && now.length) return now.join(' ');
    if (there) return 'Mean loss of the batches of an epoch, each at a random position on the curve. A bend starts on the straight line.';
    return `${counted(this.#live.expectedCurves.length, 'curve')} to fit, after the minima are trained.`;
  }
}
