// A map of minima: similar ones stand close to each other.

import { arranged } from './labels.js';
import { baseLayout, escaped, style, themed } from './theme.js';

const LOOK = style.minima_map;
const ANYWHERE = [-Infinity, -Infinity, Infinity, Infinity];

/** A figure {data, layout} by distances in weight space or by barriers, with a line between the minima of `pair`; both axes have one scale. `room` is its width in pixels. */
export function minimaMapFigure(found, { kind, colours, mode, pair = null, room = Infinity }) {
  const { minima, [kind]: { x, y } } = found;
  const places = new Map(minima.map((name, index) => [name, [x[index], y[index]]]));
  const pixels = pixelsOf(places, room);
  const groups = standingTogether(pixels);
  const hover = new Map([...groups.values()].flatMap((group) => group.map((name) => [name, group.join(', ')])));
  const points = {
    type: 'scatter',
    mode: 'markers',
    x,
    y,
    text: minima.map((name) => escaped(hover.get(name))),
    marker: { ...LOOK.marker, color: minima.map((name) => colours[name]) },
    hovertemplate: '%{text}<extra></extra>',
  };
  const title = { text: LOOK.titles[kind] };
  const annotations = labels(places, pixels, groups, mode);
  return {
    data: pair ? [points, lineBetween(pair.map((name) => places.get(name)))] : [points],
    layout: baseLayout(mode, { ...LOOK.layout, annotations, xaxis: { ...LOOK.xaxis, title }, yaxis: { ...LOOK.yaxis, title } }),
  };
}

function lineBetween(ends) {
  return { ...LOOK.pair, type: 'scatter', x: ends.map(([x]) => x), y: ends.map(([, y]) => y), hoverinfo: 'skip' };
}

/** Minima whose points nearly cover each other, by the first of them. */
function standingTogether(pixels) {
  const groups = new Map();
  for (const [name, place] of pixels) {
    const near = [...groups.keys()].find((leader) => Math.hypot(pixels.get(leader)[0] - place[0], pixels.get(leader)[1] - place[1]) < LOOK.together);
    if (near) groups.get(near).push(name);
    else groups.set(name, [name]);
  }
  return groups;
}

/** One label for all that stand together; hovering names those for which there is no room. */
function labels(places, pixels, groups, mode) {
  const look = themed(style.label, mode);
  const leaders = [...groups.keys()];
  const texts = Object.fromEntries(leaders.map((name) => [name, listed(groups.get(name))]));
  const chosen = arranged(leaders.map((name) => [name, pixels.get(name)]), texts, ANYWHERE, () => true);
  return Object.entries(chosen).map(([name, { text, anchor, shift }]) => ({
    ...look,
    x: places.get(name)[0],
    y: places.get(name)[1],
    text: escaped(text),
    xanchor: anchor[0],
    yanchor: anchor[1],
    xshift: shift[0],
    yshift: shift[1],
  }));
}

/** "a, b, c", or "a, b and 3 more" */
function listed(names) {
  return names.length <= 3 ? names.join(', ') : `${names.slice(0, 2).join(', ')} and ${names.length - 2} more`;
}

/** Places on a small screen, or on one that is smaller still: plotly.js leaves a margin around the points. */
function pixelsOf(places, room) {
  const { l, r } = LOOK.layout.margin;
  const frame = Math.min(style.labels.frame, LOOK.spread * (room - l - r));
  const [x, y] = [0, 1].map((axis) => [...places.values()].map((place) => place[axis]));
  const extent = Math.max(...[x, y].map((values) => Math.max(...values) - Math.min(...values)));
  const scale = extent > 0 ? frame / extent : 1;
  return new Map([...places].map(([name, place]) => [name, place.map((value) => value * scale)]));
}
