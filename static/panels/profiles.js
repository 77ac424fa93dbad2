/** Loss and error along the paths, with a legend that hides paths; hovering marks the position on the surfaces. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { valueAt } from '../plots/along-path.js';
import { setMarks } from '../plots/cursor.js';
import { valueText } from '../plots/numbers.js';
import { Plot } from '../plots/plot.js';
import { profileEntries, profileFigure } from '../plots/profile.js';
import { quantityTitle } from '../plots/theme.js';
import { toggle } from './toolbar-controls.js';
import { legendLine } from './legend-line.js';
import { PathScrubber } from './path-scrubber.js';
import { pathsTable, profileTable } from './tables.js';

const STEP = 0.02;
const MOST = 8;

export class ProfilesPanel {
  #live;
  #context;
  #panes = [];

  constructor(live, { urlState, theme, cursor, tooltip, colours, announce }) {
    this.#live = live;
    this.#context = { urlState, theme, cursor, tooltip, colours, announce };
    this.log = toggle({ label: 'log loss', onchange: (on) => urlState.push({ plog: on ? '1' : null }) });
    this.all = toggle({ label: 'all paths', onchange: (on) => urlState.push({ paths: on ? 'all' : null }) });
    this.all.words = this.all.node.lastChild;
    this.legend = element('div.legend', { role: 'group', 'aria-label': 'Paths shown' });
    this.pictures = element('div.pictures');
    this.summary = element('div.summary');
    this.scrubber = new PathScrubber({ cursor, urlState });
    this.node = element('section.panel.profiles', {},
      element('div.toolbar', {}, element('h2', {}, 'Along the paths'), this.log.node, this.all.node, this.legend),
      this.pictures,
      this.scrubber.node,
      this.summary);
    cursor.addEventListener('change', () => this.mark());
  }

  /** The paths with their look, those of the judged pair first; of many only those between it and its control. */
  get entries() {
    const { verdict } = this.#live;
    const paths = [...this.#live.paths, ...this.#live.aligned];
    const judged = verdict?.between ?? [];
    const beside = [...judged, verdict?.control?.name];
    const joins = ({ start, end }, names) => names.includes(start) && names.includes(end);
    const rank = (path) => (joins(path, judged) ? 0 : joins(path, beside) ? 1 : 2);
    const entries = profileEntries(paths, this.#context.colours).sort((one, other) => rank(one.path) - rank(other.path));
    const few = entries.filter(({ path }) => rank(path) < 2);
    return paths.length > MOST && few.length && !this.view.allPaths ? few : entries;
  }

  get shown() {
    return this.entries.filter(({ path }) => !this.view.hidden.has(path.name));
  }

  update(view) {
    this.view = view;
    this.log.show(view.profileLog);
    this.all.show(view.allPaths);
    this.draw();
  }

  draw() {
    const { entries } = this;
    const count = this.#live.paths.length + this.#live.aligned.length;
    this.all.node.hidden = count <= MOST;
    this.all.words.textContent = `all ${count} paths`;
    if (!entries.length) return this.#wait();
    this.node.hidden = false;
    if (!this.#panes.length) this.#arrange();
    this.#drawLegend(entries);
    this.scrubber.update(this.shown.filter(({ path }) => path.kind !== 'aligned'), this.view, this.#live.planes.get(this.view.plane));
    const notes = [...new Set(entries.flatMap(({ path }) => path.note || []))];
    this.summary.replaceChildren(
      dataTable(pathsTable(entries)),
      ...(notes.length ? [element('p.soft.caption', {}, notes.map((note) => `${note[0].toUpperCase()}${note.slice(1)}.`).join(' '))] : []),
    );
    for (const { plot, split, value } of this.#panes) {
      plot.ondraw = () => this.mark();
      plot.draw(({ narrow }) =>
        profileFigure(this.shown, { split, value, log: this.view.profileLog, mode: this.#context.theme.mode, narrow }),
      );
    }
  }

  mark() {
    const { t, path: meant } = this.#context.cursor;
    for (const { plot, split, value } of this.#panes) {
      const { frame } = plot;
      const at = t === null || !frame ? null : plot.pixel(t);
      const dots = !at
        ? []
        : this.shown
            .filter(({ path }) => path[value][split])
            .map(({ path, line }) => {
              const pixel = plot.pixel(t, valueAt(path[value][split], path.t, t));
              return pixel && { ...pixel, colour: line.color, minor: meant !== null && path.name !== meant };
            });
      setMarks(plot, dots, at && { left: at.left, top: frame.top, height: frame.height });
    }
  }

  close() {
    this.scrubber.close();
    this.#panes.forEach(({ plot }) => plot.close());
  }

  /** Placeholders of the final size, so nothing moves later. */
  #wait() {
    const { active, experiment } = this.#live;
    this.node.hidden = !active || experiment.minima.length < 2;
    if (this.node.hidden) return;
    this.scrubber.node.hidden = true;
    this.pictures.replaceChildren(
      ...this.#quantities.map(([split, value]) =>
        element('figure.plate', {}, element('div.plot-head', {}, quantityTitle(split, value)), element('div.blank')),
      ),
    );
    this.summary.replaceChildren(element('p.soft', {}, 'Lines and curves appear when their minima are trained.'));
  }

  get #quantities() {
    const errorSplit = this.#live.splits.includes('test') ? 'test' : 'train';
    return this.#live.hasErrors ? [['train', 'loss'], [errorSplit, 'error']] : [['train', 'loss']];
  }

  #arrange() {
    this.#panes = this.#quantities.map(([split, value]) => {
      const plot = new Plot({
        label: `${split} ${value} along the paths. Arrow keys move along t.`,
        caption: quantityTitle(split, value),
        table: () => profileTable(this.shown, split, value),
      });
      this.#bind(plot);
      return { plot, split, value };
    });
    this.pictures.replaceChildren(...this.#panes.map(({ plot }) => plot.node));
  }

  #bind(plot) {
    const { cursor, tooltip, announce } = this.#context;
    const leave = () => {
      tooltip.hide();
      cursor.set(null);
    };
    const go = (t, where) => {
      tooltip.show(this.#content(t), where);
      cursor.set(t);
    };
    const move = (event) => {
      const place = plot.place(event);
      if (place) go(Math.min(1, Math.max(0, place.x)), event);
      else leave();
    };
    plot.canvas.tabIndex = 0;
    for (const kind of ['pointermove', 'pointerdown']) plot.canvas.addEventListener(kind, move);
    for (const kind of ['pointerleave', 'blur']) plot.canvas.addEventListener(kind, leave);
    plot.canvas.addEventListener('keydown', (event) => {
      const step = { ArrowRight: STEP, ArrowLeft: -STEP }[event.key];
      if (event.key === 'Escape') leave();
      if (!step) return;
      event.preventDefault();
      const t = Math.min(1, Math.max(0, (cursor.t ?? 0.5) + step));
      const box = plot.stage.getBoundingClientRect();
      const pixel = plot.pixel(t);
      go(t, { clientX: box.left + (pixel?.left ?? 0), clientY: box.top + 24 });
      announce(tooltip.node.textContent);
    });
  }

  #content(t) {
    const rows = this.shown.map(({ path, label, line }) => {
      const values = this.#panes
        .filter(({ split, value }) => path[value][split])
        .map(({ split, value }) => valueText(value, valueAt(path[value][split], path.t, t)));
      return [label, values.join('   '), line.color];
    });
    return {
      title: `t ${t.toFixed(2)}: ${this.#panes.map(({ split, value }) => `${split} ${value}`).join(', ')}`,
      rows,
    };
  }

  #drawLegend(entries) {
    const { hidden } = this.view;
    const flip = (name) => {
      const next = new Set(this.view.hidden);
      if (!next.delete(name)) next.add(name);
      this.#context.urlState.push({ hide: [...next].join(',') });
    };
    const key = entries.map(({ label }) => label).join();
    if (key !== this.key) {
      this.key = key;
      this.legend.replaceChildren(
        ...entries.map(({ path: { name }, label, line }) =>
          element('button.plain', { type: 'button', 'data-path': name, onclick: () => flip(name) },
            legendLine(line),
            label),
        ),
      );
    }
    for (const button of this.legend.children)
      button.setAttribute('aria-pressed', String(!hidden.has(button.dataset.path)));
  }
}
