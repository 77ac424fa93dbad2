/** The surfaces of a plane with their controls: of one experiment, or of several on one colour scale and one zoom. */

import { element } from '../elements.js';
import { SHOWN, cameraText, zoomText, zoomedTo } from '../landscape/view-state.js';
import { stretchOf } from '../plots/axes.js';
import { contourFigure, levelOf, surfaceScale } from '../plots/contour.js';
import { setMarks } from '../plots/cursor.js';
import { Plot } from '../plots/plot.js';
import { surfaceFigure } from '../plots/surface3d.js';
import { quantityTitle } from '../plots/theme.js';
import { CameraButtons } from './camera-buttons.js';
import { captionOf } from './surface-caption.js';
import { choice, clipSlider, segmented, toggle } from './toolbar-controls.js';
import { SurfacePointer } from './surface-pointer.js';
import { surfaceTable } from './tables.js';
import { TrajectoryPlayer } from './trajectory-player.js';

const CAMERA_RESTS = 250; // milliseconds

export class SurfacesPanel {
  #members;
  #context;
  #compared;
  #panes = [];

  /** @param members [{live, colours, cursor}]; where there are several, each has a label and a color */
  constructor(members, { urlState, theme, tooltip, announce }) {
    this.#members = members;
    this.#context = { urlState, theme, tooltip, announce };
    this.#compared = members.length > 1;
    const planes = sharedPlanes(members);
    this.plane = segmented({
      label: 'plane',
      options: planes.map((name) => [name, name]),
      onchange: (plane) => urlState.push({ plane, zoom: null, clip: null, eclip: null }),
    });
    const shows = Object.entries(SHOWN).filter(([, { panes }]) =>
      this.#compared ? panes.length === 1 : panes.every(([split, value]) => members[0].live.splits.includes(split) && (value === 'loss' || members[0].live.hasErrors)),
    );
    this.show = choice({
      label: 'show',
      options: shows.map(([value, { title }]) => [value, title]),
      onchange: (show) => urlState.push(this.#compared ? { show, clip: null } : { show }),
    });
    this.form = segmented({
      label: 'as',
      options: [['contour', 'contour'], ['3d', '3-D']],
      onchange: (form) => urlState.push({ form: form === '3d' ? form : null }),
    });
    this.form.node.hidden = this.#compared;
    this.log = toggle({ label: 'log', onchange: (on) => urlState.push({ log: on ? '1' : null }) });
    this.clip = clipSlider((value) =>
      urlState.set({ [this.#compared || this.#first[1] === 'loss' ? 'clip' : 'eclip']: value }),
    );
    this.reset = element('button.reset', { type: 'button', onclick: () => urlState.push({ zoom: null, camera: null }) },
      'whole plane');
    this.cameras = new CameraButtons((camera) => urlState.push({ camera }));
    this.player = this.#compared ? null : new TrajectoryPlayer({ ...members[0], onmove: () => this.mark() });
    this.pictures = element('div.pictures');
    this.caption = element('p.soft.caption');
    const tools = [this.plane, this.show, this.form, this.log, this.clip].map(({ node }) => node);
    this.node = element('section.panel.surfaces', { 'aria-label': 'Surfaces' },
      element('div.toolbar', {}, tools, this.cameras.node, this.reset),
      this.pictures,
      this.player?.node ?? null,
      this.caption);
    this.node.hidden = !planes.length;
    for (const { cursor } of members) cursor.addEventListener('change', () => this.mark());
  }

  /** @param view as readView gives it */
  update(view) {
    const single = { show: SHOWN[view.show].panes.length > 1 ? 'train-loss' : view.show, form: 'contour', errorClip: view.clip };
    this.view = this.#compared ? { ...view, ...single } : view;
    this.plane.show(view.plane);
    this.show.show(this.view.show);
    this.form.show(view.form);
    this.log.show(view.log);
    this.log.input.disabled = SHOWN[this.view.show].panes.every(([, value]) => value === 'error');
    this.reset.classList.toggle('idle', !view.zoom && !view.camera);
    this.draw();
  }

  draw() {
    const { plane, show, form } = this.view;
    const wanted = this.#members.flatMap((member) =>
      SHOWN[show].panes
        .filter(([split, value]) => this.#compared || (member.live.splits.includes(split) && (value === 'loss' || member.live.hasErrors)))
        .map(([split, value]) => ({ member, split, value, plane: member.live.planes.get(plane) })),
    );
    const there = wanted.filter((pane) => pane.plane?.has(pane.split, pane.value));
    const key = `${plane} ${show} ${form} ${there.map(({ member, value }) => member.live.id + value)}`;
    if (key !== this.key) this.#arrange(key, wanted, there);
    this.clip.node.hidden = !there.length;
    this.cameras.node.hidden = !there.length || form !== '3d';
    this.player?.setPlane(there[0]?.plane ?? null);
    this.#setViews();
    this.caption.textContent = this.#caption;
    if (!there.length) return;
    const { scale, clip } = this.#panes[0].view;
    this.clip.show(scale, this.#panes.map((pane) => pane.plane.grid(...this.#first)), clip !== null);
    if (form === '3d') this.cameras.show(there[0].plane, there[0].member.live.claim, this.view.camera);
    for (const pane of this.#panes) this.#drawPane(pane);
  }

  /** What each plot shows, as its figure takes it. */
  get views() {
    return this.#panes.map(({ view }) => view);
  }

  /** Marks where the paths are at the cursor's t. */
  mark() {
    for (const { plot, pointer } of this.#panes) setMarks(plot, pointer.marks(this.view.hidden));
  }

  close() {
    clearTimeout(this.cameraTimer);
    this.player?.close();
    this.#closePanes();
  }

  #closePanes() {
    this.#panes.forEach(({ plot }) => plot.close());
  }

  /** Split and value of the first plot: the clip is that of its value. */
  get #first() {
    return SHOWN[this.view.show].panes[0];
  }

  get #caption() {
    if (this.#compared) return 'All plots share one colour scale, one distance scale and one zoom.';
    const [{ live }] = this.#members;
    if (this.#panes.length) {
      const [{ plane }] = this.#panes;
      return captionOf(plane, { judged: this.#panes.some(isJudged), slopes: this.#panes.some(isSloping) }) + offPlane(plane, live.pair);
    }
    if (!live.active) return 'This plane was not computed.';
    return 'Hatched: not computed yet. The surface appears when its minima are trained.';
  }

  #arrange(key, wanted, there) {
    this.key = key;
    this.#closePanes();
    this.#panes = there.map((pane) => this.#listening(pane));
    const missing = wanted.filter((pane) => !there.includes(pane)).map((pane) => this.#missing(pane));
    this.pictures.replaceChildren(...this.#panes.map(({ plot }) => plot.node), ...missing);
  }

  #missing({ member, split, value }) {
    if (this.#compared)
      return element('p.soft', {}, `${member.label} has no ${split} ${value} on the plane ${this.view.plane}.`);
    if (!member.live.active && member.live.planes.has(this.view.plane))
      return element('p.soft', {}, `The ${split} ${value} was not recorded on this plane.`);
    return element('figure.plate', {},
      element('div.plot-head', {}, element('figcaption', {}, `${split} ${value}`)),
      element('div.hatched', { role: 'img', 'aria-label': `${split} ${value}: not computed yet` }));
  }

  #listening(pane) {
    const { member, split, value, plane } = pane;
    const { urlState, announce, tooltip } = this.#context;
    const relief = this.view.form === '3d';
    const title = `${split} ${value}${this.#compared ? ` of ${member.label}` : ''} on the plane ${plane.name}`;
    const plot = new Plot({
      label: `${title}, ${relief ? 'relief' : 'contour'}. Arrow keys move over the grid.`,
      zooms: true,
      table: () => surfaceTable(plane, split, value),
    });
    const pointer = new SurfacePointer(plot, plane, {
      ...member,
      relief,
      announce,
      tooltip,
      player: this.player,
      view: () => pane.view,
    });
    plot.onfresh = () => {
      plot.canvas.on('plotly_relayout', (event) => {
        const zoom = zoomedTo(event, plot.canvas._fullLayout);
        if (zoom && !relief) urlState.push({ zoom: zoomText(zoom) });
        if (event['scene.camera']) this.#noteCamera(plot);
      });
      plot.canvas.on('plotly_relayouting', () => this.mark());
      plot.canvas.on('plotly_doubleclick', () => urlState.push({ zoom: null }));
      pointer.listen();
    };
    plot.ondraw = () => this.mark();
    return Object.assign(pane, { plot, pointer });
  }

  /** Write the camera into the address once it rests: after a turn of the wheel plotly.js still moves it. */
  #noteCamera(plot) {
    clearTimeout(this.cameraTimer);
    this.cameraTimer = setTimeout(() => {
      const scene = plot.canvas._fullLayout?.scene?._scene;
      if (scene) this.#context.urlState.set({ camera: cameraText(scene.getCamera().eye) });
    }, CAMERA_RESTS);
  }

  /** Surfaces of the same quantity share a colour scale. */
  #setViews() {
    const planes = [...new Set(this.#panes.map(({ plane }) => plane))];
    const { log, clip, errorClip, camera } = this.view;
    const frame = frameOf(planes);
    const stretch = stretchOf([frame.x[1] - frame.x[0], frame.y[1] - frame.y[0]]);
    const shown = { zoom: this.view.zoom ?? frame, stretch, camera, mode: this.#context.theme.mode };
    const claims = planes.map((plane) => this.#panes.find((pane) => pane.plane === plane).member.live.claim);
    const scales = {};
    for (const pane of this.#panes) {
      const { member, split, value, plane } = pane;
      const claim = claims[planes.indexOf(plane)];
      const view = { split, value, log, clip: value === 'loss' ? clip : errorClip, claim };
      scales[value] ??= surfaceScale(planes, { ...view, claims });
      pane.view = { ...view, ...shown, scale: scales[value], colours: member.colours };
    }
  }

  #drawPane({ plot, plane, member, view }) {
    const { split, value, log } = view;
    const title = quantityTitle(split, value, log);
    const named = [element('i.dot', { style: `background:${member.color}` }), ` ${member.label}: `];
    plot.caption.replaceChildren(...(this.#compared ? named : []), title);
    plot.draw(({ room, narrow }) => {
      if (this.view.form !== '3d') return contourFigure(plane, { ...view, narrow });
      const figure = surfaceFigure(plane, { ...view, narrow });
      figure.layout.height = Math.round(Math.min(600, Math.max(320, 0.72 * room)));
      return figure;
    });
  }
}

/** A chosen pair may lie on no plane of the experiment: then no picture shows its claim. */
function offPlane(plane, pair) {
  const off = (pair ?? []).filter((name) => !(name in plane.points) || plane.isProjected(name));
  return off.length ? ` This plane does not pass through ${off.join(' and ')} of the judged pair.` : '';
}

function isJudged({ view, plane }) {
  return Boolean(view && levelOf(plane, view)?.judged);
}

function isSloping({ view, plane }) {
  return Boolean(view && typeof levelOf(plane, view)?.floor === 'number');
}

/** The planes that all experiments have; if there are none, those of the first. */
export function sharedPlanes(members) {
  const [first, ...others] = members.map(({ live }) => live.experiment.planes);
  const shared = first.filter((name) => others.every((planes) => planes.includes(name)));
  return shared.length ? shared : first;
}

/** The smallest frame around all planes. */
function frameOf(planes) {
  const ends = (axis) => [
    Math.min(...planes.map((plane) => plane[axis][0])),
    Math.max(...planes.map((plane) => plane[axis].at(-1))),
  ];
  return { x: ends('x'), y: ends('y') };
}
