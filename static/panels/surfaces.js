/** The surfaces of a plane: one or two plots, contour or 3-D, with their controls. */

import { element } from '../elements.js';
import { SHOWN, cameraText, zoomText, zoomedTo } from '../landscape/view-state.js';
import { contourFigure, surfaceScale } from '../plots/contour.js';
import { setMarks } from '../plots/cursor.js';
import { significant } from '../plots/numbers.js';
import { Plot } from '../plots/plot.js';
import { surfaceFigure } from '../plots/surface3d.js';
import { quantityTitle } from '../plots/theme.js';
import { captionOf } from './surface-caption.js';
import { choice, clipRange, clipSlider, segmented, toggle } from './toolbar-controls.js';
import { SurfacePointer } from './surface-pointer.js';
import { surfaceTable } from './tables.js';

export class SurfacesPanel {
  #live;
  #context;
  #panes = [];

  constructor(live, { urlState, theme, cursor, tooltip, colours, announce }) {
    this.#live = live;
    this.#context = { urlState, theme, cursor, tooltip, colours, announce };
    const planes = live.experiment.planes;
    this.plane = segmented({
      label: 'plane',
      options: planes.map((name) => [name, name]),
      onchange: (plane) => urlState.push({ plane, zoom: null, clip: null, eclip: null }),
    });
    const splits = live.experiment.spec.splits ?? ['train', 'test'];
    const shows = Object.entries(SHOWN).filter(([, { panes }]) => panes.every(([split]) => splits.includes(split)));
    this.show = choice({
      label: 'show',
      options: shows.map(([value, { title }]) => [value, title]),
      onchange: (show) => urlState.push({ show }),
    });
    this.form = segmented({
      label: 'as',
      options: [
        ['contour', 'contour'],
        ['3d', '3-D'],
      ],
      onchange: (form) => urlState.push({ form: form === '3d' ? form : null }),
    });
    this.log = toggle({ label: 'log', onchange: (on) => urlState.push({ log: on ? null : '0' }) });
    this.clip = clipSlider({
      label: 'clip',
      text: (value) => this.#clipText(value),
      onchange: (value) => urlState.set({ [this.#clipField]: value }),
    });
    this.reset = element('button', { type: 'button', hidden: true, onclick: () => urlState.push({ zoom: null, camera: null }) },
      'whole plane');
    this.pictures = element('div.pictures');
    this.caption = element('p.soft.caption');
    const tools = element('div.toolbar', {},
      this.plane.node,
      this.show.node,
      this.form.node,
      this.log.node,
      this.clip.node,
      this.reset);
    this.node = element('section.panel.surfaces', { 'aria-label': 'Surfaces' }, tools, this.pictures, this.caption);
    this.node.hidden = !planes.length;
    cursor.addEventListener('change', () => this.mark());
  }

  /** @param view as readView gives it */
  update(view) {
    this.view = view;
    this.plane.show(view.plane);
    this.show.show(view.show);
    this.form.show(view.form);
    this.log.show(view.log);
    this.log.input.disabled = SHOWN[view.show].panes.every(([, value]) => value === 'error');
    this.reset.hidden = !view.zoom && !view.camera;
    this.draw();
  }

  draw() {
    const plane = this.#live.planes.get(this.view.plane);
    const wanted = SHOWN[this.view.show].panes.filter(([split]) => !plane || plane.has(split, 'loss'));
    const key = `${this.view.plane} ${this.view.show} ${this.view.form} ${Boolean(plane)}`;
    if (key !== this.key) this.#arrange(key, wanted, plane);
    this.clip.node.hidden = !plane;
    if (!plane) return;
    this.#showClip(plane);
    this.caption.textContent = captionOf(plane);
    for (const pane of this.#panes) this.#drawPane(pane, plane);
  }

  /** Marks where the paths are at the cursor's t. */
  mark() {
    const plane = this.#live.planes.get(this.view?.plane);
    if (!plane) return;
    for (const pane of this.#panes) setMarks(pane.plot, pane.pointer.marks(plane, this.view));
  }

  close() {
    this.#panes.forEach(({ plot }) => plot.close());
  }

  #arrange(key, wanted, plane) {
    this.key = key;
    this.close();
    if (!plane) {
      this.#panes = [];
      const waiting = wanted.map(([split, value]) =>
        element('figure.plate', {},
          element('div.plot-head', {}, element('figcaption', {}, `${split} ${value}`)),
          element('div.hatched', { role: 'img', 'aria-label': `${split} ${value}: not computed yet` })),
      );
      this.pictures.replaceChildren(...waiting);
      const { active } = this.#live;
      this.caption.textContent = active
        ? 'Hatched: not computed yet. The surface appears when its minima are trained.'
        : 'This plane was not computed.';
      return;
    }
    this.#panes = wanted.map(([split, value]) => this.#pane(split, value));
    this.pictures.replaceChildren(...this.#panes.map(({ plot }) => plot.node));
  }

  #pane(split, value) {
    const { announce, cursor, tooltip, colours } = this.#context;
    const label = `${split} ${value} on the plane ${this.view.plane}, ${this.view.form === '3d' ? 'relief' : 'contour'}. Arrow keys move over the grid.`;
    const plot = new Plot({
      label,
      table: () => surfaceTable(this.#live.planes.get(this.view.plane), split, value),
    });
    const pane = { plot, split, value };
    pane.pointer = new SurfacePointer(pane, {
      live: this.#live,
      cursor,
      tooltip,
      colours,
      announce,
      view: () => this.view,
      viewOf: () => this.#viewOf(pane),
    });
    pane.pointer.bind();
    plot.onfresh = () => this.#listen(pane);
    plot.ondraw = () => this.mark();
    return pane;
  }

  #viewOf({ split, value }) {
    const { log, clip, errorClip, zoom, camera } = this.view;
    const { theme, colours } = this.#context;
    return { split, value, log, clip: value === 'loss' ? clip : errorClip, zoom, camera, mode: theme.mode, colours };
  }

  #drawPane(pane, plane) {
    const view = this.#viewOf(pane);
    pane.plot.caption.textContent = quantityTitle(view.split, view.value, view.log);
    const relief = this.view.form === '3d';
    const shape = view.zoom
      ? (view.zoom.y[1] - view.zoom.y[0]) / (view.zoom.x[1] - view.zoom.x[0])
      : plane.extent[1] / plane.extent[0];
    return pane.plot.draw(({ room, narrow }) => {
      if (!relief) return { ...contourFigure(plane, { ...view, narrow }), shape };
      const figure = surfaceFigure(plane, { ...view, narrow });
      figure.layout.height = Math.round(Math.min(600, Math.max(320, 0.72 * room)));
      return figure;
    });
  }

  #listen(pane) {
    const { urlState } = this.#context;
    pane.plot.canvas.on('plotly_relayout', (event) => {
      const zoom = zoomedTo(event, pane.plot.canvas._fullLayout);
      if (zoom && this.view.form !== '3d') urlState.push({ zoom: zoomText(zoom) });
      const camera = event['scene.camera'];
      if (camera) urlState.set({ camera: cameraText(camera.eye) });
    });
    pane.plot.canvas.on('plotly_relayouting', () => this.mark());
    pane.plot.canvas.on('plotly_doubleclick', () => urlState.push({ zoom: null }));
    pane.pointer.listen();
  }

  get #clipField() {
    return SHOWN[this.view.show].panes[0][1] === 'loss' ? 'clip' : 'eclip';
  }

  #clipText(value) {
    return this.#clipField === 'clip' ? `${significant(value)} nats` : `${significant(100 * value)} %`;
  }

  #showClip(plane) {
    const [split, value] = SHOWN[this.view.show].panes[0];
    const scale = surfaceScale(plane, this.#viewOf({ split, value }));
    const chosen = value === 'loss' ? this.view.clip : this.view.errorClip;
    this.clip.show(scale.high, clipRange(scale, plane.grid(split, value)), chosen !== null);
  }
}
