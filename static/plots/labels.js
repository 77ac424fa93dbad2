// Where the labels of named points go: beside their point, inside the frame, clear of each other.
// The frame is measured in pixels of a small screen, so that what fits there fits everywhere.

import { isFar, stretchOf } from './axes.js';
import { isBend, straightLines } from './sampling.js';
import { style } from './theme.js';

export const TRAJECTORY = 'trajectory:';
const { frame: FRAME, character: CHARACTER, padding: PADDING, height: HEIGHT, mark: MARK, positions: POSITIONS, path: PATH, places: PLACES } = style.labels;

/** The named points within the frame, without those far off the plane and the bends of curves drawn elsewhere. */
export function shownPoints(plane) {
  const { x, y, points } = plane;
  const inside = ([across, up]) => across >= x[0] && across <= x[x.length - 1] && up >= y[0] && up <= y[y.length - 1];
  return Object.fromEntries(
    Object.entries(points).filter(([name, place]) => inside(place) && belongs(name, plane) && !isFar(plane, name)),
  );
}

/** Whether a named point says something about this plane: all but the bends of curves that are drawn elsewhere. */
export function belongs(name, { defining, paths }) {
  const at = name.indexOf('.bend');
  return at < 0 || defining.includes(name) || name.slice(0, at) in paths;
}

/** Labels of the named points within the frame: {text, anchor, shift}.
 *
 * A point off the plane is named only where there is room: its label must not cover those that matter more.
 */
export function labelsOf(plane) {
  const points = shownPoints(plane);
  const toPixel = pixels(plane);
  const places = Object.entries(points).map(([name, place]) => [name, toPixel(place)]);
  places.sort(([one], [other]) => plane.isProjected(one) - plane.isProjected(other));
  return arranged(places, textsOf(Object.keys(points), plane), frameOf(plane), (name) => plane.isProjected(name));
}

/** Labels at places in pixels, [name, [x, y]], in their order; those that can be spared are left out where there is no room. */
export function arranged(places, texts, frame, spare) {
  const taken = places.map(([, place]) => around(place, MARK));
  const chosen = {};
  places.forEach(([name, place], own) => {
    const others = taken.filter((_, index) => index !== own);
    const faults = POSITIONS.map((candidate) => {
      const box = boxOf(...place, texts[name], candidate);
      return {
        box,
        candidate,
        outside: outside(box, frame),
        overlap: others.reduce((sum, other) => sum + overlap(box, other), 0),
      };
    });
    const best = faults.reduce(better);
    if (spare(name) && best.outside + best.overlap > 0) return;
    taken.push(best.box);
    chosen[name] = { text: texts[name], ...best.candidate };
  });
  return chosen;
}

/** The place of a line where a label is inside the frame, and clear of named points, their labels and the paths.
 *
 * `others`: more labels to be clear of, as [place, text].
 */
export function roomiest(plane, text, line, others = []) {
  const toPixel = pixels(plane);
  const frame = frameOf(plane);
  const points = shownPoints(plane);
  const paths = [...straightLines(plane), ...Object.values(curvesOf(plane))];
  const taken = [
    ...Object.values(points).map((place) => around(toPixel(place), MARK)),
    ...Object.entries(labelsOf(plane)).map(([name, label]) => boxOf(...toPixel(points[name]), label.text, label)),
    ...paths.flatMap(({ x, y }) => Array.from(x, (across, n) => around(toPixel([across, y[n]]), PATH))),
  ];
  const step = Math.ceil(line.length / PLACES);
  const centred = { anchor: ['center', 'middle'], shift: [0, 0] };
  taken.push(...others.map(([place, words]) => boxOf(...toPixel(place), words, centred)));
  const faults = line
    .filter((_, n) => n % step === 0)
    .map((place) => {
      const box = boxOf(...toPixel(place), text, centred);
      return {
        place,
        outside: outside(box, frame),
        overlap: taken.reduce((sum, other) => sum + overlap(box, other), 0),
      };
    });
  return faults.reduce(better).place;
}

/** The curves drawn on a plane, by name; its other paths are trajectories. */
export function curvesOf({ paths }) {
  return Object.fromEntries(Object.entries(paths).filter(([name]) => !name.startsWith(TRAJECTORY)));
}

function better(a, b) {
  return b.outside < a.outside || (b.outside === a.outside && b.overlap < a.overlap) ? b : a;
}

function frameOf(plane) {
  return [0, 0, ...pixels(plane)([plane.x.at(-1), plane.y.at(-1)])];
}

/** From places of a plane to pixels of a small screen. */
function pixels(plane) {
  const [width, height] = plane.extent;
  const ratio = stretchOf(plane.extent);
  const scale = FRAME / Math.max(width, ratio * height);
  return ([x, y]) => [(x - plane.x[0]) * scale, (y - plane.y[0]) * ratio * scale];
}

function around([x, y], reach) {
  return [x - reach, y - reach, x + reach, y + reach];
}

function textsOf(names, plane) {
  const bends = names.filter(isBend);
  const short = (name) => (bends.length === 1 && name === bends[0] ? 'bend' : name);
  return Object.fromEntries(
    names.map((name) => [name, plane.isProjected(name) ? `${short(name)} (projected)` : short(name)]),
  );
}

function boxOf(x, y, text, { anchor, shift }) {
  const width = CHARACTER * text.length + PADDING;
  const left = x + shift[0] - { left: 0, center: width / 2, right: width }[anchor[0]];
  const bottom = y + shift[1] - { bottom: 0, middle: HEIGHT / 2, top: HEIGHT }[anchor[1]];
  return [left, bottom, left + width, bottom + HEIGHT];
}

function outside(box, frame) {
  const over = [frame[0] - box[0], frame[1] - box[1], box[2] - frame[2], box[3] - frame[3]];
  return over.reduce((sum, amount) => sum + Math.max(amount, 0), 0);
}

function overlap(one, other) {
  const width = Math.min(one[2], other[2]) - Math.max(one[0], other[0]);
  const height = Math.min(one[3], other[3]) - Math.max(one[1], other[1]);
  return width > 0 && height > 0 ? width * height : 0;
}
