/** A picture of plotly.js in the page: drawn in place, as wide as its column, with its numbers as a table behind it. */

import { dataTable } from '../components/data-table.js';
import { element } from '../elements.js';
import { loadPlotly } from '../plotly.js';
import { CONFIG, NARROW, sizeOf } from './theme.js';

export class Plot {
  /**
   * @param {{label: string, table?: () => object, caption?: string, bare?: boolean, zooms?: boolean}} about
   *   bare: the button stands elsewhere; zooms: by the wheel while Ctrl is held
   */
  constructor({ label, table, caption, bare = false, zooms = false }) {
    this.config = zooms ? { ...CONFIG, scrollZoom: 'cartesian+gl3d' } : CONFIG;
    this.canvas = element('div.plot', { role: 'img', 'aria-label': label });
    this.overlay = element('div.overlay', { 'aria-hidden': 'true' });
    this.caption = element('figcaption', {}, caption ?? '');
    this.behind = element('div.behind', { hidden: true });
    this.table = table;
    const onclick = () => this.#toggle();
    this.button = element('button.plain.table-button', { type: 'button', 'aria-expanded': 'false', onclick }, 'Table');
    const top = element('div.plot-head', {}, this.caption, table ? this.button : null);
    this.stage = element('div.stage', {}, this.canvas, this.overlay);
    this.node = element('figure.plate', {}, bare ? null : top, this.stage, this.behind);
    this.stage.addEventListener('wheel', onWheel, { capture: true, passive: false });
    this.width = 0;
    this.draws = 0;
    /** Called when plotly.js has begun a picture anew, and forgotten who listens to it. */
    this.onfresh = null;
    this.ondraw = null;
    this.#watch();
  }

  /** @param make (room) => {data, layout, shape?}: `shape` is height over width of the frame, where units are equal */
  draw(make) {
    this.make = make;
    return (this.drawing = this.#drawn(make));
  }

  async #drawn(make) {
    const Plotly = await loadPlotly();
    if (this.closed || make !== this.make || !this.node.isConnected) return;
    const room = Math.floor(this.node.clientWidth);
    if (!room) return;
    this.width = room;
    const narrow = room < NARROW;
    // What plotly.js keeps of a standing colour bar spoils the margins of a lying one: then the picture begins anew.
    const fresh = narrow !== this.narrow;
    this.narrow = narrow;
    const { data, layout, shape } = make({ room, narrow });
    const { width, height } = sizeOf(room, layout, shape);
    this.canvas.style.width = `${width}px`;
    this.canvas.style.height = `${height}px`;
    const size = { width, height, autosize: false };
    await Plotly[fresh ? 'newPlot' : 'react'](this.canvas, data, { ...layout, ...size }, this.config);
    if (this.closed) return;
    this.draws += 1;
    this.canvas.dataset.draws = String(this.draws);
    this.canvas.dataset.room = String(room);
    this.stage.style.width = `${width}px`;
    if (fresh) this.onfresh?.();
    this.ondraw?.();
    if (!this.behind.hidden) this.#fill();
  }

  /** Where a place of the flat axes is, in pixels of the stage; null outside the frame. */
  pixel(x, y) {
    const { xaxis, yaxis } = this.canvas._fullLayout ?? {};
    if (!xaxis?._length) return null;
    const across = xaxis.d2p(x);
    const up = y === undefined ? 0 : yaxis.d2p(y);
    if (!(across >= -1 && across <= xaxis._length + 1 && up >= -1 && up <= yaxis._length + 1)) return null;
    return { left: xaxis._offset + across, top: yaxis._offset + up };
  }

  /** The place under a pointer on the flat axes; null outside the frame. */
  place(event) {
    const { xaxis, yaxis } = this.canvas._fullLayout ?? {};
    if (!xaxis?._length) return null;
    const box = this.canvas.getBoundingClientRect();
    const across = event.clientX - box.left - xaxis._offset;
    const up = event.clientY - box.top - yaxis._offset;
    if (across < 0 || up < 0 || across > xaxis._length || up > yaxis._length) return null;
    return { x: xaxis.p2d(across), y: yaxis.p2d(up) };
  }

  /** The frame of the flat axes in pixels of the stage. */
  get frame() {
    const { xaxis, yaxis } = this.canvas._fullLayout ?? {};
    return xaxis?._length
      ? { left: xaxis._offset, top: yaxis._offset, width: xaxis._length, height: yaxis._length }
      : null;
  }

  close() {
    this.closed = true;
    this.observer.disconnect();
    globalThis.Plotly?.purge(this.canvas);
  }

  #toggle() {
    this.behind.hidden = !this.behind.hidden;
    this.button.setAttribute('aria-expanded', String(!this.behind.hidden));
    if (this.behind.hidden) this.behind.replaceChildren();
    else this.#fill();
  }

  #fill() {
    this.behind.replaceChildren(dataTable(this.table()));
  }

  #watch() {
    let waiting = 0;
    this.observer = new ResizeObserver(() => {
      const room = Math.floor(this.node.clientWidth);
      if (!this.make || room === this.width) return;
      clearTimeout(waiting);
      waiting = setTimeout(async () => {
        await this.drawing; // which may wait for plotly.js, and draw at this width
        if (Math.floor(this.node.clientWidth) !== this.width) this.draw(this.make);
      }, 60);
    });
    this.observer.observe(this.node);
  }
}

/** The wheel scrolls the page and never gets to plotly.js, unless Ctrl is held; then the page itself must not zoom. */
function onWheel(event) {
  if (event.ctrlKey || event.metaKey) event.preventDefault();
  else event.stopPropagation();
}
