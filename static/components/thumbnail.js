import { coloursOf, viridis } from '../colours.js';
import { element } from '../elements.js';
import { Plane, decoded } from '../landscape/plane.js';
import { surfaceScale } from '../plots/contour.js';
import { scaleFor } from '../plots/scale.js';
import { style } from '../plots/theme.js';
import { floorLines, toleranceLines } from '../plots/tolerance-contour.js';

const MOST_LIVE = 2; // of the six connections that a browser opens to one server
const SIZE = [384, 288]; // of the picture with lines and dots, in pixels: as wide and tall as it is shown
const DOT = 9;
const live = new Set();
const WITH_SURFACE = ['surfaces', 'profiles', 'verdict'];

/**
 * A small picture of an experiment's first surface: train loss, clipped a little above the lines between its minima,
 * with the tolerance contour and the minima.
 * Cells that are not computed stay empty.
 * @param {object} api
 */
export class Thumbnail {
  constructor(api) {
    this.api = api;
    this.canvas = element('canvas.thumbnail', { role: 'img', 'aria-label': 'no surface yet' });
    this.close = () => {};
    this.source = null;
  }

  /** Shows an experiment; does nothing if its surface has not changed. */
  show(experiment) {
    const { id, state, stage, planes, run } = experiment;
    if (!planes.length) return;
    const ended = state === 'failed' || state === 'cancelled';
    const grows = state === 'running' && WITH_SURFACE.includes(stage);
    const source = `${state === 'done' ? 'surface' : grows ? 'live' : 'events'} ${run}`;
    if ((state !== 'done' && !ended && !grows) || source === this.source) return;
    if (grows && live.size >= MOST_LIVE) return;
    this.source = source;
    this.close();
    if (state === 'done') this.#fromSurface(id, experiment.minima);
    else this.#fromTiles(id, planes[0], grows);
  }

  async #fromSurface(id, minima) {
    try {
      const answer = await this.api.get(`/api/experiments/${id}/surface`);
      const plane = new Plane(answer);
      const done = decoded(answer.done);
      const z = plane.merge('train', 'loss', decoded(answer.z), done);
      plane.markDone(done);
      const claim = { level: () => answer.level };
      const scale = surfaceScale([plane], { split: 'train', value: 'loss', log: false, claim });
      this.#draw(plane.rows, plane.columns, z, done, scale, 'train loss on the first plane');
      if (answer.level) this.#drawClaim(plane, { tolerance: toleranceLines(plane, z, answer.level), floor: floorLines(plane, z, answer.level) }, minima);
    } catch {
      this.canvas.setAttribute('aria-label', 'the surface could not be read'); // perhaps just deleted
    }
  }

  /** Until the experiment is done, its values come from the event stream. */
  #fromTiles(id, plane, follow) {
    let side = 0;
    let cells = [];
    let waiting = 0;
    const draw = () => {
      waiting = 0;
      const z = new Float64Array(side * side).fill(NaN);
      for (const [row, column, value] of cells) z[row * side + column] = value;
      const done = z.map((value) => Number(!Number.isNaN(value)));
      this.#draw(side, side, z, done, scaleFor(z, 'loss', false, null), 'train loss on the first plane, so far');
    };
    const close = this.api.events(id, {
      follow,
      onEvent: ({ kind, data }) => {
        if (kind !== 'tile' || data.plane !== plane) return;
        const losses = data.values.train.loss;
        data.rows.forEach((row, index) => cells.push([row, data.columns[index], Number(losses[index])]));
        side = Math.max(side, ...data.rows.map((row) => row + 1));
        waiting ||= requestAnimationFrame(draw);
      },
    });
    if (follow) live.add(this);
    this.close = () => {
      live.delete(this);
      close();
      cancelAnimationFrame(waiting);
    };
  }

  #draw(rows, columns, z, done, scale, label) {
    const [low, high] = scale.range;
    this.canvas.width = columns;
    this.canvas.height = rows;
    const context = this.canvas.getContext('2d');
    const picture = context.createImageData(columns, rows);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const place = nearestDone(done, rows, columns, row, column);
        if (place < 0) continue;
        const target = 4 * ((rows - 1 - row) * columns + column);
        picture.data.set([...viridis((scale.encode(z[place]) - low) / (high - low)), 255], target);
      }
    }
    context.putImageData(picture, 0, 0);
    this.canvas.setAttribute('aria-label', label);
  }

  /** Draws the tolerance contour and the minima over the surface, in more pixels than it has cells. */
  #drawClaim(plane, contours, minima) {
    const { canvas } = this;
    const cells = Object.assign(document.createElement('canvas'), { width: plane.columns, height: plane.rows });
    cells.getContext('2d').drawImage(canvas, 0, 0);
    [canvas.width, canvas.height] = SIZE;
    const context = canvas.getContext('2d');
    context.drawImage(cells, 0, 0, canvas.width, canvas.height);
    const [width, height] = plane.extent;
    const at = ([x, y]) => [ // values belong to the middles of cells
      (canvas.width / plane.columns) * (0.5 + ((x - plane.x[0]) / width) * (plane.columns - 1)),
      canvas.height - (canvas.height / plane.rows) * (0.5 + ((y - plane.y[0]) / height) * (plane.rows - 1)),
    ];
    for (const look of ['tolerance_halo', 'tolerance', 'floor_halo', 'floor']) {
      const { color, width: wide, dash } = style.contour[look];
      context.beginPath();
      context.setLineDash(dash ? dash.split(',').map((length) => 2 * parseFloat(length)) : []);
      for (const line of contours[look.replace('_halo', '')]) line.forEach((place, n) => context[n ? 'lineTo' : 'moveTo'](...at(place)));
      Object.assign(context, { strokeStyle: color, lineWidth: wide, lineJoin: 'round' });
      context.stroke();
    }
    context.setLineDash([]);
    const colours = coloursOf(minima);
    for (const name of minima.filter((minimum) => minimum in plane.points && !plane.isProjected(minimum))) {
      context.beginPath();
      context.arc(...at(plane.points[name]), DOT, 0, 2 * Math.PI);
      Object.assign(context, { fillStyle: colours[name], strokeStyle: '#ffffff', lineWidth: 2 });
      context.fill();
      context.stroke();
    }
  }
}

/** The nearest computed cell: a coarse grid fills the picture until the rest is computed. */
function nearestDone(done, rows, columns, row, column) {
  for (let reach = 0; reach <= 6; reach += 1) {
    for (let r = Math.max(0, row - reach); r <= Math.min(rows - 1, row + reach); r += 1) {
      for (let c = Math.max(0, column - reach); c <= Math.min(columns - 1, column + reach); c += 1) {
        if (Math.max(Math.abs(r - row), Math.abs(c - column)) === reach && done[r * columns + c]) return r * columns + c;
      }
    }
  }
  return -1;
}
