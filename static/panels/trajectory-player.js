/** Plays the training of the minima on the surface: each moves along its snapshots. */

import { Playback } from '../components/playback.js';
import { element } from '../elements.js';
import { loss, percent } from '../format.js';
import { placeAt } from '../plots/along-path.js';
import { TRAJECTORY } from '../plots/labels.js';

export class TrajectoryPlayer {
  #live;
  #plane = null;
  #shown = false;

  /** @param context {live, colours, onmove: () => void} */
  constructor({ live, colours, onmove }) {
    this.#live = live;
    this.colours = colours;
    this.output = element('output.playback-text');
    this.playback = new Playback({
      label: 'training',
      thing: 'the training of the minima',
      text: (position) => this.#text(position),
      onmove: () => {
        this.#shown = true;
        this.#describe();
        onmove();
      },
    });
    this.node = element('div.player', {}, this.playback.node, this.output);
    this.node.hidden = true;
  }

  /** Show the trajectories of a plane; the player is hidden on planes without any. */
  setPlane(plane) {
    const fresh = plane !== this.#plane;
    this.#plane = plane;
    const runs = this.#runs;
    this.node.hidden = !runs.length;
    if (!runs.length) this.playback.pause();
    else this.playback.setSteps(Math.max(...runs.map(({ count }) => count)) - 1);
    if (fresh) this.#describe();
  }

  /** Where each minimum is now, as {x, y, colour}; none before the first move. */
  get places() {
    if (!this.#shown) return [];
    return this.#runs.map(({ name, path }) => ({
      ...placeAt(path, this.playback.position),
      colour: this.colours[name] ?? '#7F7F7F',
    }));
  }

  close() {
    this.playback.close();
  }

  get #runs() {
    const paths = Object.entries(this.#plane?.paths ?? {});
    return paths
      .filter(([name, { x }]) => name.startsWith(TRAJECTORY) && x.length > 1)
      .map(([name, path]) => ({ name: name.slice(TRAJECTORY.length), path, count: path.x.length }));
  }

  #describe() {
    this.output.textContent = this.#shown ? this.#text(this.playback.position) : 'Play to see how the minima were reached.';
    this.playback.describe();
  }

  /** "sgd: epoch 12 of 30, train loss 0.012, test accuracy 98.1 %" for each minimum. */
  #text(position) {
    return this.#runs
      .map(({ name, count }) => {
        const index = Math.round(position * (count - 1));
        const run = this.#live.minima[name];
        const every = run?.settings?.snapshots;
        const last = run?.epochs?.epoch?.at(-1);
        if (!every || !last) return `${name}: snapshot ${index + 1} of ${count}`;
        const epoch = Math.min(last, (index + 1) * every);
        const at = run.epochs.epoch.indexOf(epoch);
        const metrics = at < 0 ? '' : `, train loss ${loss(run.epochs.train_loss?.[at])}, test accuracy ${percent(run.epochs.test_accuracy?.[at])}`;
        return `${name}: epoch ${epoch} of ${last}${metrics}`;
      })
      .join('; ');
  }
}
