/** The curvature at the minima: spectrum, its growth in training, direction factors, and the theorem on trial. */

import { noted } from '../components/data-table.js';
import { colouredName, element } from '../elements.js';
import { cutsFigure, factorsFigure, flatnessFigure, growthFigure, spectrumFigure, theoremFigure } from '../plots/curvature.js';
import { significant } from '../plots/numbers.js';
import { Plot } from '../plots/plot.js';

export class CurvaturePanel {
  #live;
  #context;
  #plots = new Map();
  #trials = new Map();

  constructor(live, { theme, colours }) {
    this.#live = live;
    this.#context = { theme, colours };
    this.words = element('p.soft.caption');
    this.pictures = element('div.pictures');
    this.sentences = element('div');
    this.legend = element('div.legend');
    this.node = element('section.panel.curvature', { hidden: true },
      element('div.toolbar', {}, element('h2', {}, 'Curvature'), this.legend), this.pictures, this.sentences, this.words);
  }

  get #minima() {
    const { colours } = this.#context;
    return Object.entries(this.#live.curvature ?? {}).map(([name, summary]) => ({ name, color: colours[name], summary }));
  }

  draw() {
    const minima = this.#minima;
    this.node.hidden = minima.length === 0;
    if (!minima.length) return;
    this.legend.replaceChildren(...minima.map(({ name, color }) => colouredName(color, name)));
    const directed = minima.filter(({ summary }) => summary.directions);
    const grown = minima.filter(({ summary }) => summary.epochs.epoch?.length);
    this.#show('spectrum', 'Spectrum: density of all eigenvalues, ticks: those found', minima, spectrumFigure, spectrumTable);
    if (directed.length) {
      this.#show('factors', `Direction factors by layer, cut ${significant(directed[0].summary.directions.cut)}`, directed, factorsFigure, factorsTable);
      this.#show('cuts', 'How they depend on the cut: median, smallest and largest', directed, cutsFigure, cutsTable);
    }
    for (const { name, summary: { directions } } of directed)
      if (directions.distances.length)
        this.#show(`flatness ${name}`, `Train loss around ${name}: is the valley flat where theory says?`, directions, flatnessFigure, flatnessTable);
    const sentences = [];
    for (const { name, summary } of minima)
      for (const [run, trial] of Object.entries(summary.trials)) {
        this.#show(`theorem ${run}`, `Predicted from ${name}, measured in ${run}; ○ s = 1`, trial, theoremFigure, theoremTable);
        sentences.push(element('p', {}, trial.text));
      }
    // Two plots tall: in the last row it leaves no gap.
    if (grown.length) this.#show('growth', 'After the epochs of the snapshots', grown, growthFigure, growthTable);
    this.sentences.replaceChildren(...sentences);
    const { kind, samples } = minima[0].summary;
    const matrix = kind === 'ggn' ? 'generalised Gauss-Newton matrix' : 'Hessian';
    this.words.textContent = `${matrix} of the mean train loss over ${samples.toLocaleString('en')} samples. `
      + 'Above the edge of stability, 2 / learning rate, a step of gradient descent overshoots. '
      + (directed.length ? 's = 1: shrinking the group is flat; s < 0: the theorem lets it grow.' : '')
      + minima.filter(({ summary }) => !summary.converged).map(({ name }) => ` Not all eigenvalues of ${name} have converged.`).join('');
  }

  close() {
    for (const plot of this.#plots.values()) plot.close();
  }

  #show(key, caption, content, make, table) {
    let plot = this.#plots.get(key);
    if (!plot) {
      plot = new Plot({ label: caption, caption, table: () => table(this.#trials.get(key)) });
      this.#plots.set(key, plot);
      this.pictures.append(plot.node);
    }
    this.#trials.set(key, content);
    plot.draw((view) => make(content, { ...view, mode: this.#context.theme.mode }));
  }
}

function spectrumTable(minima) {
  const rows = minima.flatMap(({ name, summary }) => [
    [name, 'trace', significant(summary.trace), `± ${significant(summary.trace_error)}`],
    ...summary.eigenvalues.map((value, index) => [name, `eigenvalue ${index + 1}`, significant(value, 5), significant(summary.residuals[index])]),
    ...summary.lowest.map((value, index) => [name, `lowest ${index + 1}`, significant(value, 5), significant(summary.lowest_residuals[index])]),
  ]);
  return { caption: 'eigenvalues and trace', text: ['minimum', 'quantity'], numbers: ['value', 'residual or standard error'], rows };
}

function growthTable(minima) {
  const columns = ['largest', 'edge', 'trace', 'trace_error'];
  return {
    caption: 'curvature along training',
    text: ['minimum'],
    numbers: ['epoch', 'largest eigenvalue', 'edge of stability', 'trace', 'standard error'],
    rows: minima.flatMap(({ name, summary: { epochs } }) =>
      epochs.epoch.map((epoch, index) => [name, String(epoch), ...columns.map((column) => significant(epochs[column]?.[index]))])),
  };
}

function factorsTable(minima) {
  return {
    caption: 'direction factors',
    text: ['minimum', 'layer'],
    numbers: ['norm', 's'],
    rows: minima.flatMap(({ name, summary: { directions } }) =>
      directions.layers.map((layer, index) => [name, layer, significant(directions.norms[index]), significant(directions.factors[index])])),
  };
}

function cutsTable(minima) {
  const columns = ['cut', 'removed', 'smallest', 'median', 'largest'];
  return {
    caption: 'direction factors over the cut',
    text: ['minimum'],
    numbers: ['cut', 'directions removed', 'smallest s', 'median s', 'largest s'],
    rows: minima.flatMap(({ name, summary: { directions } }) =>
      directions.spread.map((row) => [name, ...columns.map((column) => significant(row[column]))])),
  };
}

function flatnessTable({ distances, losses }) {
  return {
    caption: 'train loss at equal distances',
    text: ['distance'],
    numbers: ['flat subspace', 'all groups shrink', 'sharpest eigenvector'],
    rows: distances.map((distance, index) =>
      [significant(distance), ...['flat', 'groups', 'sharpest'].map((key) => significant(losses[key][index]))]),
  };
}

function theoremTable(trial) {
  const columns = ['start', 'factors', 'theorem', 'null', 'measured'];
  return {
    caption: 'group norms',
    text: ['layer'],
    numbers: ['at SGD', 's', 'predicted', 'predicted, s = 1', 'measured'],
    rows: trial.layers.map((layer, index) => [layer, ...columns.map((column) => significant(trial[column][index]))]),
  };
}

/** Two cells of the table of minima: largest eigenvalue, and trace with its standard error. */
export function curvatureCells(summary) {
  if (!summary) return ['–', '–'];
  const trace = Number.isNaN(summary.trace)
    ? '–'
    : noted(significant(summary.trace), `± ${significant(summary.trace_error, 2)}`);
  return [significant(summary.eigenvalues[0]), trace];
}
