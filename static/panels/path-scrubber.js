/** Walks along one path: a slider moves a mark on the surfaces and on the profile, and the values there are written out. */

import { Playback } from '../components/playback.js';
import { element } from '../elements.js';
import { plainPrecision } from '../format.js';
import { drawnPaths, valueAt } from '../plots/along-path.js';
import { valueText } from '../plots/numbers.js';
import { choice } from './toolbar-controls.js';

export class PathScrubber {
  #context;
  #entries = [];
  #name = null;

  /** @param context {cursor, urlState} */
  constructor(context) {
    this.#context = context;
    const { urlState } = context;
    this.playback = new Playback({
      label: 'position',
      thing: 'the walk along the path',
      text: (t) => this.#text(t),
      onmove: (t) => this.#move(t),
      onrest: (t) => urlState.note({ t: t.toFixed(2), along: this.#name }),
    });
    this.clear = element('button.plain', { type: 'button', onclick: () => this.#leave() }, 'clear');
    this.output = element('output.playback-text');
    this.place = element('span');
    this.node = element('div.scrubber', { role: 'group', 'aria-label': 'Walk along a path' },
      this.place, this.playback.node, this.clear, this.output);
  }

  /** @param entries paths that are shown, as profileEntries gives them; view: as readView gives it; plane: if there is one */
  update(entries, view, plane) {
    this.plane = plane;
    const names = entries.map(({ path }) => path.name);
    if (names.join() !== this.#entries.map(({ path }) => path.name).join()) this.#offer(entries);
    this.#entries = entries;
    this.node.hidden = !entries.length;
    const wanted = [view.along, this.#name, judgedFirst(entries)].find((name) => names.includes(name)) ?? null;
    this.#name = wanted;
    if (wanted) this.select.show(wanted);
    // A position in the address counts when it is opened or gone back to, not while the slider moves away from it.
    if (view.t !== this.viewed) {
      this.viewed = view.t;
      if (view.t !== null) this.#move(view.t);
    }
    this.playback.show(this.#context.cursor.isHeld ? this.#context.cursor.t : this.playback.position);
    this.#describe();
  }

  close() {
    this.playback.close();
  }

  #offer(entries) {
    this.select = choice({
      label: 'walk along',
      options: entries.map(({ path, label }) => [path.name, label]),
      onchange: (name) => {
        this.#name = name;
        this.#move(this.playback.position);
        this.playback.onrest(this.playback.position);
      },
    });
    this.place.replaceChildren(this.select.node);
  }

  #move(t) {
    this.playback.show(t);
    this.#context.cursor.hold(t, this.#name);
    this.#describe();
  }

  #leave() {
    this.playback.pause();
    this.playback.show(0);
    this.#context.cursor.hold(null);
    this.#context.urlState.note({ t: null, along: null });
    this.#describe();
  }

  #describe() {
    const held = this.#context.cursor.isHeld;
    this.clear.disabled = !held;
    this.output.textContent = held ? this.#text(this.playback.position) : 'Move the slider to walk from one minimum to the other.';
    this.playback.describe();
  }

  /** "t 0.50, distance 4.1 of 8.2: train loss 0.012, train error 0.1 %, ..." */
  #text(t) {
    const path = this.#entries.find((entry) => entry.path.name === this.#name)?.path;
    if (!path) return `t ${t.toFixed(2)}`;
    const values = Object.keys(path.loss).flatMap((split) =>
      ['loss', 'error'].map((value) => `${split} ${value} ${valueText(value, valueAt(path[value][split], path.t, t))}`),
    );
    const drawn = !this.plane || drawnPaths(this.plane).some(({ names }) => names.includes(path.name));
    if (!drawn) values.push(`not drawn on the plane ${this.plane.name}`);
    const distance = plainPrecision(valueAt(path.arc, path.t, t), 3);
    return `t ${t.toFixed(2)}, distance ${distance} of ${plainPrecision(path.arc.at(-1), 3)}: ${values.join(', ')}`;
  }
}

/** The line that the verdict is about comes first where there is one: any line before any curve. */
function judgedFirst(entries) {
  return (entries.find(({ path }) => path.kind === 'line') ?? entries[0])?.path.name ?? null;
}
