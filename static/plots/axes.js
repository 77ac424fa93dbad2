// The axes of a plane: where they lead, whether one is stretched, and the notes above the frame.
// The same rules as landscape/figures/axes.py, which explains them.

import { significant } from './numbers.js';
import { isBend } from './sampling.js';
import { escaped, style, themed } from './theme.js';

const RULES = style.axes;
const DIRECTIONS = {
  around: ['a random direction', 'another random direction'],
  principal: ['first principal direction', 'second principal direction'],
};

/** Length of a unit on the vertical axis over one on the horizontal axis: 1, a whole number, or one over it. */
export function stretchOf([width, height]) {
  const shape = height / width;
  if (shape < RULES.flattest) return Math.ceil(RULES.stretched_to / shape);
  return shape > 1 / RULES.flattest ? 1 / Math.ceil(RULES.stretched_to * shape) : 1;
}

/** Where each axis leads, and its unit. */
export function axisTitles(plane, xBreak = ', ') {
  const unit = escaped(plane.unit);
  const [across, up] = directions(plane);
  return [across ? `${across}${xBreak}${unit}` : unit, up ? `${up}<br>${unit}` : unit];
}

function directions({ kind, defining, points, axes, explained }) {
  if (axes.length) return axes.map(escaped);
  if (kind in DIRECTIONS) {
    if (!explained) return DIRECTIONS[kind];
    const [first, second] = explained.map((share) => `${(100 * share).toFixed(1)} %`);
    return [`${DIRECTIONS[kind][0]} (${first} of the squared distances)`, `${DIRECTIONS[kind][1]} (${second})`];
  }
  if (defining.length < 3 || !defining.every((name) => name in points)) return ['', ''];
  const [start, end, third] = defining.map((name) => points[name]);
  return [
    end[0] > start[0] ? `towards ${escaped(defining[1])}` : '',
    third[1] > start[1] ? `towards ${escaped(defining[2])}` : '',
  ];
}

/** Whether a point is too far off the plane to be drawn on it. */
export function isFar(plane, name) {
  return (plane.distances[name] ?? 0) > RULES.far * Math.max(...plane.extent);
}

/** What the picture says above its frame; `heights` has the value at each minimum that is drawn. */
export function notesOf(plane, scale, heights, stretch) {
  const far = Object.keys(plane.points).filter((name) => !isBend(name) && isFar(plane, name));
  const off = far.map((name) => `${escaped(name)}: ${significant(plane.distances[name])} off this plane`).join(', ');
  const above = Object.entries(heights).filter(([, value]) => value > scale.high);
  const listed = above.map(([name, value]) => `${escaped(name)} (${scale.label(value)})`).join(', ');
  return [
    far.length > RULES.most_named ? `${far.length} minima are far off this plane` : off,
    stretchText(stretch),
    listed && `above the clip: ${listed}`,
  ].filter(Boolean);
}

function stretchText(ratio) {
  if (ratio === 1) return '';
  const [axis, factor] = ratio > 1 ? ['vertical', ratio] : ['horizontal', 1 / ratio];
  return `${axis} axis stretched ${significant(factor)}×`;
}

/** The notes as lines above a frame whose left edge is at `x` of the paper. */
export function noteAnnotations(notes, mode, x = 0) {
  const { room, shift } = style.notes;
  const look = themed(style.note, mode);
  return notes.map((text, index) => ({ ...look, x, text, yshift: shift + room * (notes.length - 1 - index) }));
}

/** Pixels above a frame that its notes need. */
export function roomOf(notes) {
  return style.notes.room * notes.length;
}
