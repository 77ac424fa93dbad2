// Marks beside a colour bar: a dot at the value of each minimum.
// The same rules as landscape/figures/colour_bar_marks.py; only the page has bars that lie above a narrow picture.

import { style, themed } from './theme.js';

const LOOK = style.contour;
const MARK = LOOK.bar_marks;

/** Shapes beside a standing bar, or over one that lies above the frame, `above` pixels from it. */
export function barMarks(scale, heights, colours, mode, { bar = {}, lying = null } = {}) {
  const [foot, length] = bar && 'len' in bar ? [bar.y, bar.len] : [0, 1];
  const pixel = { xref: 'paper', yref: 'paper', xsizemode: 'pixel', ysizemode: 'pixel' };
  const standing = (share) => ({ ...pixel, xanchor: bar?.x ?? 1, yanchor: foot + length * share });
  const at = lying ? (share) => ({ ...pixel, xanchor: share, yanchor: 1 }) : standing;
  const edge = LOOK.bar.xpad;
  const half = MARK.size / 2;
  return markPlaces(scale, heights).map(({ share, slot, name }) => {
    const centre = edge - MARK.from_bar - MARK.step * slot;
    const box = lying
      ? { x0: MARK.step * slot - half, x1: MARK.step * slot + half, y0: lying.above - half, y1: lying.above + half }
      : { x0: centre - half, x1: centre + half, y0: -half, y1: half };
    const look = { fillcolor: colours[name] ?? style.white, line: themed(MARK.line, mode) };
    return { type: 'circle', ...at(share), ...box, ...look };
  });
}

/** For each minimum, lowest first: its share of the bar's length, and its slot away from the bar. */
function markPlaces(scale, heights) {
  const places = [];
  for (const [name, value] of Object.entries(heights).sort(([, one], [, other]) => one - other)) {
    const share = scale.share(value);
    const near = places.filter((place) => Math.abs(share - place.share) < MARK.near).length;
    places.push({ name, share, slot: Math.min(near, MARK.slots - 1) });
  }
  return places;
}
