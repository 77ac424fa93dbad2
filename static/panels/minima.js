/** The minima: a table with one colour each, their training epoch by epoch, and the sparsity of their layers. */

import { dataTable, noted } from '../components/data-table.js';
import { colouredName, element } from '../elements.js';
import { loss, percent } from '../format.js';
import { Plot } from '../plots/plot.js';
import { sparsityFigure } from '../plots/sparsity.js';
import { QUANTITIES, trainingFigure } from '../plots/training.js';
import { curvatureCells } from './curvature.js';
import { toggle } from './toolbar-controls.js';
import { METRICS, layersTable, metricsOf, trainingTable } from './tables.js';
import { lossUnit } from '../plots/loss-unit.js';

export class MinimaPanel {
  #live;
  #colours;

  constructor(live, { colours }) {
    this.#live = live;
    this.#colours = colours;
    this.place = element('div');
    this.words = element('p.soft.caption');
    this.pruning = element('div');
    this.node = element('section.panel.minima', {}, element('h2', {}, 'Minima'), this.place, this.pruning, this.words);
  }

  draw() {
    const sharpness = this.#live.ownVerdict?.sharpness ?? {};
    const runs = this.#live.runs;
    const { curvature } = this.#live;
    const hasSharpness = Object.keys(sharpness).length > 0;
    this.words.textContent = [
      [lossUnit() ? `Losses in ${lossUnit()}` : 'Losses', runs.some(({ epochs }) => epochs.epoch?.length) ? ', after the last epoch.' : '.'].join(''),
      'Sparsity: parameters that are exactly zero; zero groups: whole filters, rows or kernels with their bias.',
      hasSharpness ? 'Sharpness: how much the train loss rises on average at that relative distance.' : '',
    ].join(' ');
    this.pruning.replaceChildren(...runs.filter(({ pruning }) => pruning?.text).map(({ name, pruning }) =>
      element('p.caption', {}, colouredName(this.#colours[name], name), ` ${pruning.text}.`)));
    this.place.replaceChildren(
      dataTable({
        caption: 'minima',
        stacked: true,
        text: ['minimum', 'optimiser'],
        numbers: [
          ...METRICS,
          ...(hasSharpness ? ['sharpness'] : []),
          ...(curvature ? ['largest eigenvalue', 'trace'] : []),
        ],
        rows: this.#live.experiment.minima.map((name) => {
          const run = runs.find((found) => found.name === name);
          const final = run?.final ?? {};
          return [
            colouredName(this.#colours[name], name),
            run?.optimizer || this.#stage(name, final.epoch),
            ...metricsOf(final, zeroGroups(run)),
            ...(hasSharpness ? [rise(sharpness[name])] : []),
            ...(curvature ? curvatureCells(curvature[name]) : []),
          ];
        }),
      }),
    );
  }

  /** The state of an untrained minimum. */
  #stage(name, epoch) {
    const { active, workers, experiment } = this.#live;
    if (experiment.origin === 'imported') return '–';
    if (epoch === undefined && workers.some(({ task }) => task === `train:${name}`)) return 'starting';
    if (epoch === undefined) return active ? 'waiting' : 'not trained';
    return active ? `training, epoch ${epoch}` : `stopped at epoch ${epoch}`;
  }
}

export class TrainingPanel {
  #live;
  #context;

  constructor(live, { urlState, theme, colours }) {
    this.#live = live;
    this.#context = { theme, colours };
    this.log = toggle({ label: 'log loss', onchange: (on) => urlState.push({ tlog: on ? null : '0' }) });
    this.legend = element('div.legend');
    this.plot = new Plot({
      bare: true,
      label: 'loss, accuracy, sparsity, threshold and angle over the epochs',
      table: () => trainingTable(this.runs),
    });
    this.blank = element('div.blanks', {}, QUANTITIES.map(() => element('div.blank')));
    this.node = element('section.panel.training', {},
      element('div.toolbar', {}, element('h2', {}, 'Training'), this.log.node, this.legend, this.plot.button),
      this.plot.node,
      this.blank);
  }

  get runs() {
    const { colours } = this.#context;
    return this.#live.runs.map(({ name, epochs }) => ({ label: name, epochs, color: colours[name] }));
  }

  update(view) {
    this.view = view;
    this.log.show(view.trainingLog);
    this.draw();
  }

  draw() {
    const runs = this.runs.filter(({ epochs }) => epochs.epoch?.length);
    showOrWait(this, runs.length > 0, this.#live.active);
    if (!runs.length) return;
    this.legend.replaceChildren(...runs.map(({ label, color }) => colouredName(color, label)));
    this.plot.draw(({ room, narrow }) =>
      trainingFigure(runs, { room, log: this.view.trainingLog, mode: this.#context.theme.mode, narrow }),
    );
  }

  close() {
    this.plot.close();
  }
}

export class SparsityPanel {
  #live;
  #context;

  constructor(live, { theme, colours }) {
    this.#live = live;
    this.#context = { theme, colours };
    this.plot = new Plot({
      label: 'groups that are zero, by layer',
      caption: 'filled: exactly zero, pale: kept',
      table: () => layersTable(this.minima),
    });
    this.blank = element('div.blank');
    this.node = element('section.panel.sparsity', {},
      element('h2', {}, 'Sparsity by layer'),
      this.plot.node,
      this.blank);
  }

  get minima() {
    return this.#live.runs.filter(({ layers }) => layers.length);
  }

  draw() {
    const { minima } = this;
    showOrWait(this, minima.length > 0, this.#live.active);
    const { theme, colours } = this.#context;
    if (minima.length) this.plot.draw(({ narrow }) => sparsityFigure(minima, { mode: theme.mode, colours, narrow }));
  }

  close() {
    this.plot.close();
  }
}

/** Shows the plot, or while the experiment runs a placeholder of its size, so nothing moves later. */
function showOrWait({ node, plot, blank }, there, active) {
  node.hidden = !there && !active;
  plot.node.hidden = !there;
  plot.button.hidden = !there;
  blank.hidden = there;
}

function zeroGroups(run) {
  const groups = (run?.layers ?? []).reduce((sum, layer) => sum + layer.groups, 0);
  if (!groups) return percent(run?.final.zero_groups);
  const zero = run.layers.reduce((sum, layer) => sum + layer.zero_groups, 0);
  return noted(percent(zero / groups), `${zero} of ${groups}`);
}

function rise(values) {
  if (!values || values.rise === null || values.rise === undefined) return '–';
  return noted(`+${loss(values.rise)}`, `within ${values.radius}`);
}
