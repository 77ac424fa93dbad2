/** Surfaces of several experiments side by side: one colour scale, one zoom. */

import { element } from '../elements.js';
import { SHOWN, zoomText, zoomedTo } from '../landscape/view-state.js';
import { contourFigure, valuesAlong } from '../plots/contour.js';
import { significant } from '../plots/numbers.js';
import { Plot } from '../plots/plot.js';
import { scaleFor } from '../plots/scale.js';
import { quantityTitle } from '../plots/theme.js';
import { choice, clipRange, clipSlider, segmented, toggle } from './toolbar-controls.js';
import { SurfacePointer } from './surface-pointer.js';
import { surfaceTable } from './tables.js';

export class ComparedSurfacesPanel {
  #members;
  #context;
  #panes = [];

  /** @param members [{live, label, color, colours, cursor}] */
  constructor(members, { urlState, theme, tooltip, announce }) {
    this.#members = members;
    this.#context = { urlState, theme, tooltip, announce };
    this.plane = segmented({
      label: 'plane',
      options: sharedPlanes(members).map((name) => [name, name]),
      onchange: (plane) => urlState.push({ plane, zoom: null, clip: null }),
    });
    const single = Object.entries(SHOWN).filter(([, { panes }]) => panes.length === 1);
    this.show = choice({
      label: 'show',
      options: single.map(([value, { title }]) => [value, title]),
      onchange: (show) => urlState.push({ show, clip: null }),
    });
    this.log = toggle({ label: 'log', onchange: (on) => urlState.push({ log: on ? null : '0' }) });
    this.clip = clipSlider({
      label: 'clip',
      text: (value) => this.#clipText(value),
      onchange: (clip) => urlState.set({ clip }),
    });
    this.reset = element('button', { type: 'button', hidden: true, onclick: () => urlState.push({ zoom: null }) },
      'whole plane');
    this.pictures = element('div.pictures');
    this.node = element('section.panel', { 'aria-label': 'Surfaces' },
      element('div.toolbar', {}, this.plane.node, this.show.node, this.log.node, this.clip.node, this.reset),
      this.pictures,
      element('p.soft.caption', {}, 'All plots share one colour scale, one distance scale and one zoom.'));
  }

  update(view) {
    this.view = { ...view, show: view.show === 'pair' ? 'train-loss' : view.show };
    this.plane.show(view.plane);
    this.show.show(this.view.show);
    this.log.show(view.log);
    this.reset.hidden = !view.zoom;
    this.draw();
  }

  draw() {
    const [split, value] = SHOWN[this.view.show].panes[0];
    const there = this.#members.filter(({ live }) => live.planes.get(this.view.plane)?.has(split, value));
    const key = `${this.view.plane} ${this.view.show} ${there.map(({ label }) => label).join()}`;
    if (key !== this.key) this.#arrange(key, there, split, value);
    if (!there.length) return;
    const planes = there.map(({ live }) => live.planes.get(this.view.plane));
    const scale = sharedScale(planes, { split, value, log: this.view.log, clip: this.view.clip });
    const zoom = this.view.zoom ?? union(planes);
    this.#showClip(scale, planes, split, value);
    this.#panes.forEach((pane, index) => this.#drawPane(pane, planes[index], { split, value, scale, zoom }));
  }

  close() {
    this.#panes.forEach(({ plot }) => plot.close());
  }

  #arrange(key, there, split, value) {
    this.key = key;
    this.close();
    this.#panes = there.map((member) => {
      const { live, label, colours, cursor } = member;
      const plot = new Plot({
        label: `${split} ${value} of ${label} on the plane ${this.view.plane}. Arrow keys move over the grid.`,
        table: () => surfaceTable(live.planes.get(this.view.plane), split, value),
      });
      const { tooltip, announce } = this.#context;
      const pointer = new SurfacePointer(
        { plot },
        {
          live,
          cursor,
          tooltip,
          colours,
          announce,
          view: () => ({ ...this.view, form: 'contour' }),
          viewOf: () => null,
        },
      );
      pointer.bind();
      plot.onfresh = () => this.#listen(plot);
      return { plot, member };
    });
    const missing = this.#members
      .filter((member) => !there.includes(member))
      .map(({ label }) => element('p.soft', {}, `${label} has no ${split} ${value} on the plane ${this.view.plane}.`));
    this.pictures.replaceChildren(...this.#panes.map(({ plot }) => plot.node), ...missing);
  }

  #listen({ canvas }) {
    const { urlState } = this.#context;
    canvas.on('plotly_relayout', (event) => {
      const moved = zoomedTo(event, canvas._fullLayout);
      if (moved) urlState.push({ zoom: zoomText(moved) });
    });
    canvas.on('plotly_doubleclick', () => urlState.push({ zoom: null }));
  }

  #drawPane(pane, plane, { split, value, scale, zoom }) {
    const { plot, member } = pane;
    plot.caption.replaceChildren(
      element('i.dot', { style: `background:${member.color}` }),
      ` ${member.label}: ${quantityTitle(split, value, scale.log)}`,
    );
    const shape = (zoom.y[1] - zoom.y[0]) / (zoom.x[1] - zoom.x[0]);
    plot.draw(({ narrow }) => ({
      ...contourFigure(plane, {
        split,
        value,
        scale,
        zoom,
        mode: this.#context.theme.mode,
        colours: member.colours,
        narrow,
      }),
      shape,
    }));
  }

  #clipText(value) {
    return SHOWN[this.view.show].panes[0][1] === 'error'
      ? `${significant(100 * value)} %`
      : `${significant(value)} nats`;
  }

  #showClip(scale, planes, split, value) {
    const grids = planes.map((plane) => plane.grid(split, value));
    this.clip.show(scale.high, clipRange(scale, ...grids), this.view.clip !== null);
  }
}

/** The planes that all experiments have; if there are none, those of the first. */
export function sharedPlanes(members) {
  const [first, ...others] = members.map(({ live }) => live.experiment.planes);
  const shared = first.filter((name) => others.every((planes) => planes.includes(name)));
  return shared.length ? shared : first;
}

/** One colour scale for all surfaces. */
function sharedScale(planes, { split, value, log, clip }) {
  const grids = planes.map((plane) => plane.grid(split, value));
  const all = new Float64Array(grids.reduce((sum, grid) => sum + grid.length, 0));
  grids.reduce((offset, grid) => (all.set(grid, offset), offset + grid.length), 0);
  return scaleFor(
    all,
    value,
    log,
    clip,
    planes.flatMap((plane, index) => valuesAlong(plane, grids[index])),
  );
}

/** The smallest frame around all planes. */
function union(planes) {
  const ends = (axis) => [
    Math.min(...planes.map((plane) => plane[axis][0])),
    Math.max(...planes.map((plane) => plane[axis].at(-1))),
  ];
  return { x: ends('x'), y: ends('y') };
}
