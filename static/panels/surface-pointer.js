/** Mouse, touch and arrow keys on a surface: shows the values there and moves the cursor of a nearby path. */

import { drawnPaths, nearestPath, placeAt, valueAt } from '../plots/along-path.js';
import { scenePixel } from '../plots/cursor.js';
import { shownPoints } from '../plots/labels.js';
import { significant, valueText } from '../plots/numbers.js';
import { nearest } from '../plots/sampling.js';
import { heightAt } from '../plots/surface3d.js';

const REACH = 0.04;
const STEPS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };

export class SurfacePointer {
  #plot;
  #plane;
  #context;
  #cell = null;

  /** @param context {live, colours, cursor, tooltip, announce, player?, relief: whether in 3-D, view: () => what is shown} */
  constructor(plot, plane, context) {
    this.#plot = plot;
    this.#plane = plane;
    this.#context = context;
    const { canvas } = plot;
    canvas.tabIndex = 0;
    canvas.addEventListener('keydown', (event) => this.#key(event));
    for (const kind of ['pointerleave', 'blur']) canvas.addEventListener(kind, () => this.#leave());
    if (context.relief) return;
    for (const kind of ['pointermove', 'pointerdown'])
      canvas.addEventListener(kind, (event) => this.#move(plot.place(event), event));
  }

  /** Adds listeners to the plot, each time it is created. */
  listen() {
    if (!this.#context.relief) return;
    const { canvas } = this.#plot;
    canvas.on('plotly_hover', ({ points: [point], event }) => this.#move(point, event ?? this.#centre()));
    canvas.on('plotly_unhover', () => this.#leave());
  }

  /** The marks of this picture: a dot on each path at the cursor's t, and the cell that the keys are at. */
  marks(hidden) {
    const { cursor, live, colours, relief, view, player } = this.#context;
    const plane = this.#plane;
    const places =
      cursor.t === null
        ? []
        : drawnPaths(plane).flatMap((path) => {
            const known = live.paths.find(({ name }) => path.names.includes(name));
            if (known && hidden.has(known.name)) return [];
            const reversed = known?.name === path.names[1];
            const minor = cursor.path !== null && known?.name !== cursor.path;
            const label = cursor.isHeld && !minor && known ? this.#valueOn(known, cursor.t) : null;
            const place = placeAt(path, reversed ? 1 - cursor.t : cursor.t);
            return { ...place, colour: colours[known?.end] ?? '#7F7F7F', minor, label };
          });
    places.push(...(player?.places ?? []));
    if (this.#cell) places.push({ x: plane.x[this.#cell[0]], y: plane.y[this.#cell[1]], colour: '#ffffff' });
    return places.map(({ x, y, ...look }) => {
      const pixel = relief
        ? scenePixel(this.#plot, x, y, heightAt(plane, view(), x, y))
        : this.#plot.pixel(x, y);
      return pixel && { ...pixel, ...look };
    });
  }

  /** The value that this picture shows, as it was measured on a path. */
  #valueOn(path, t) {
    const { split, value } = this.#context.view();
    const values = path[value][split];
    return values ? valueText(value, valueAt(values, path.t, t)) : null;
  }

  #move(place, where) {
    if (!place) {
      this.#leave();
      return;
    }
    const plane = this.#plane;
    const column = nearest(plane.x, place.x);
    const row = nearest(plane.y, place.y);
    const near = nearestPath(drawnPaths(plane), place, REACH * Math.max(...plane.extent));
    const known = near && this.#context.live.paths.find(({ name }) => near.path.names.includes(name));
    const t = !near ? null : known && known.name === near.path.names[1] ? 1 - near.t : near.t;
    this.#context.tooltip.show(this.#content(plane, column, row, place, known, t), where);
    this.#context.cursor.set(t, known?.name ?? null);
  }

  #content(plane, column, row, place, path, t) {
    const index = row * plane.columns + column;
    const rows = plane.done[index]
      ? plane.quantities.map(([split, quantity]) => [
          `${split} ${quantity}`,
          this.#valueText(plane, split, quantity, index),
        ])
      : [['not computed yet', '']];
    if (path)
      rows.push([
        path.kind === 'line' ? `line ${path.start} to ${path.end}` : `curve ${path.name}`,
        `t ${t.toFixed(2)}`,
      ]);
    const point = this.#pointAt(plane, place);
    return {
      title: `${point ? `${point}: ` : ''}x ${significant(plane.x[column])}, y ${significant(plane.y[row])}`,
      rows,
    };
  }

  /** A value with its standard error, if the surface is estimated. */
  #valueText(plane, split, quantity, index) {
    const text = valueText(quantity, plane.grid(split, quantity)[index]);
    const key = `${quantity}_error`;
    return plane.has(split, key) ? `${text} ± ${valueText(quantity, plane.grid(split, key)[index])}` : text;
  }

  #pointAt(plane, place) {
    const reach = 0.02 * Math.max(...plane.extent);
    const found = Object.entries(shownPoints(plane)).find(
      ([, [x, y]]) => Math.hypot(x - place.x, y - place.y) <= reach,
    );
    if (!found) return null;
    const off = plane.isProjected(found[0])
      ? ` (projected, ${significant(plane.distances[found[0]])} off the plane)`
      : '';
    return found[0] + off;
  }

  #key(event) {
    if (event.key === 'Escape') {
      this.#leave();
      return;
    }
    const step = STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const plane = this.#plane;
    const [column, row] = this.#cell ?? [plane.columns >> 1, plane.rows >> 1];
    const size = event.shiftKey ? 5 : 1;
    this.#cell = [clamped(column + size * step[0], plane.columns), clamped(row + size * step[1], plane.rows)];
    const place = { x: plane.x[this.#cell[0]], y: plane.y[this.#cell[1]] };
    this.#move(place, this.#onScreen(place));
    this.#context.cursor.dispatchEvent(new Event('change'));
    this.#context.announce(this.#context.tooltip.node.textContent);
  }

  #onScreen({ x, y }) {
    const pixel = this.#context.relief ? null : this.#plot.pixel(x, y);
    const box = this.#plot.stage.getBoundingClientRect();
    return pixel ? { clientX: box.left + pixel.left, clientY: box.top + pixel.top } : this.#centre();
  }

  #centre() {
    const box = this.#plot.stage.getBoundingClientRect();
    return { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
  }

  #leave() {
    this.#cell = null;
    this.#context.tooltip.hide();
    this.#context.cursor.set(null);
  }
}

function clamped(index, length) {
  return Math.min(length - 1, Math.max(0, index));
}
