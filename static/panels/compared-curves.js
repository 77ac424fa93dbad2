/** Profiles and training of several experiments overlaid, one colour per experiment. */

import { colouredName, element } from '../elements.js';
import { SHOWN } from '../landscape/view-state.js';
import { Plot } from '../plots/plot.js';
import { pathLabel, profileFigure } from '../plots/profile.js';
import { quantityTitle } from '../plots/theme.js';
import { trainingFigure } from '../plots/training.js';
import { choice, toggle } from './toolbar-controls.js';
import { profileTable, trainingTable } from './tables.js';

export class ComparedCurvesPanel {
  #members;
  #context;

  constructor(members, { urlState, theme }) {
    this.#members = members;
    this.#context = { urlState, theme };
    this.path = choice({
      label: 'path',
      options: this.#paths().map((name) => [name, name]),
      onchange: (path) => urlState.push({ path }),
    });
    this.log = toggle({ label: 'log loss', onchange: (on) => urlState.push({ plog: on ? '1' : null }) });
    const minima = [...new Set(members.flatMap(({ live }) => live.experiment.minima))];
    this.minimum = choice({
      label: 'minimum',
      options: minima.map((name) => [name, name]),
      onchange: (minimum) => urlState.push({ minimum }),
    });
    this.first = minima.includes('altsdp') ? 'altsdp' : minima[0];
    this.profiles = SHOWN.pair.panes.map(([split, value]) => ({
      split,
      value,
      plot: new Plot({
        label: `${split} ${value} along the path, all experiments`,
        caption: quantityTitle(split, value),
        table: () => profileTable(this.#entries(), split, value),
      }),
    }));
    this.training = new Plot({
      bare: true,
      label: 'training of all experiments',
      table: () => trainingTable(this.#runs()),
    });
    const legend = () => element('div.legend', {}, members.map(({ label, color }) => colouredName(color, label)));
    this.node = element('div.overlays', {},
      element('section.panel', {},
        element('div.toolbar', {}, element('h2', {}, 'Along a path'), this.path.node, this.log.node, legend()),
        element('div.pictures', {}, this.profiles.map(({ plot }) => plot.node))),
      element('section.panel', {},
        element('div.toolbar', {}, element('h2', {}, 'Training'), this.minimum.node, legend(), this.training.button),
        this.training.node));
  }

  update(view) {
    const query = this.#context.urlState.get();
    const paths = this.#paths();
    this.chosen = paths.includes(query.path) ? query.path : paths[0];
    this.run = query.minimum ?? this.first;
    this.path.show(this.chosen);
    this.minimum.show(this.run);
    this.log.show(view.profileLog);
    const { mode } = this.#context.theme;
    for (const { plot, split, value } of this.profiles)
      plot.draw(({ narrow }) => profileFigure(this.#entries(), { split, value, log: view.profileLog, mode, narrow }));
    this.training.draw(({ room, narrow }) =>
      trainingFigure(this.#runs(), { room, log: view.trainingLog, mode, narrow }),
    );
  }

  close() {
    for (const { plot } of this.profiles) plot.close();
    this.training.close();
  }

  /** Names of all paths, lines first: the line decides between one basin and two. */
  #paths() {
    return [...new Set(this.#members.flatMap(({ live }) => Object.keys({ ...live.lines, ...live.curves })))];
  }

  #entries() {
    return this.#members.flatMap(({ live, label, color }) => {
      const path = live.lines[this.chosen] ?? live.curves[this.chosen];
      if (!path) return [];
      const line = { color, width: 2.2, dash: path.kind === 'line' ? 'dash' : 'solid' };
      return { path, label: `${label}, ${pathLabel(path)}`, line };
    });
  }

  #runs() {
    return this.#members.flatMap(({ live, label, color }) => {
      const run = live.runs.find(({ name }) => name === this.run);
      return run ? { label, epochs: run.epochs, color } : [];
    });
  }
}
