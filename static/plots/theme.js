// What all figures share. The values are in style.json, which landscape/figures reads, too; the rules are the same there.

import style from './style.json' with { type: 'json' };

export { style };

/** On a narrower page the colour bar lies above the frame. */
export const NARROW = 480;
const TALLEST = 560;

/** The options of plotly.js in the dashboard, which has its own hovering, zooming and downloads. */
export const CONFIG = {
  ...style.config,
  responsive: false,
  doubleClick: false,
  displayModeBar: false,
  scrollZoom: false,
};

/** A part of the style in the inks of a theme: "$muted" stands for the ink of that name. */
export function themed(part, mode) {
  const inks = style.inks[mode] ?? style.inks.light;
  return JSON.parse(JSON.stringify(part), (_, value) => (value[0] === '$' ? inks[value.slice(1)] : value));
}

/** The layout every figure starts from. All that depends on the theme is in its template, never in a trace. */
export function baseLayout(mode, more = {}) {
  const { axis, scene_axis: sides, bar, bar_text: insidetextfont, layout } = themed(style, mode);
  const surfaces = ['contour', 'heatmap', 'surface'].map((type) => [type, [{ colorbar: bar }]]);
  const scene = { xaxis: sides, yaxis: sides, zaxis: sides };
  const template = {
    data: { ...Object.fromEntries(surfaces), bar: [{ insidetextfont }] },
    layout: { ...layout, xaxis: axis, yaxis: axis, scene },
  };
  return { template, margin: style.margin, ...more };
}

/** "train loss, nats (log scale)" */
export function quantityTitle(split, value, log = false) {
  return `${split} ${style.titles[value]}${log && value === 'loss' ? style.titles.log : ''}`;
}

/** A text above one of several pictures. */
export function heading(text, x, y, mode) {
  return { text, x, y, ...themed(style.heading, mode) };
}

/** A logarithmic axis: powers of ten, or what plotly chooses where hardly one of them would be seen. */
export function logAxis(lists) {
  const values = lists.flatMap((list) => [...list].filter((value) => value > 0 && value < Infinity));
  const sorted = Float64Array.from(values).sort();
  return { type: 'log', ...(sorted.at(-1) >= style.scale.log_axis * sorted[0] ? { dtick: 1 } : { nticks: 6 }) };
}

/** Names come from people: plotly.js would read tags and fields in them. */
export function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('%{', '% {');
}

/** The size of a figure in its room. A plane has equal units on both axes: it is as large as its frame and margins. */
export function sizeOf(room, { margin, height }, shape) {
  if (!shape) return { width: room, height: height ?? Math.min(300, Math.max(220, 0.4 * room)) };
  const across = margin.l + margin.r;
  const up = margin.t + margin.b;
  const frame = Math.min(room - across, (TALLEST - up) / shape);
  return { width: Math.round(frame + across), height: Math.round(frame * shape + up) };
}
