// A map of minima: similar ones stand close to each other.

import { baseLayout, escaped, style } from './theme.js';

const LOOK = style.minima_map;

/** A figure {data, layout} by distances in weight space or by barriers; both axes have one scale. */
export function minimaMapFigure(found, { kind, colours, mode }) {
  const { x, y } = found[kind];
  const trace = {
    type: 'scatter',
    mode: 'markers+text',
    x,
    y,
    text: found.minima.map(escaped),
    ...LOOK.text,
    marker: { ...LOOK.marker, color: found.minima.map((name) => colours[name]) },
    hovertemplate: '%{text}<extra></extra>',
  };
  const title = { text: LOOK.titles[kind] };
  return {
    data: [trace],
    layout: baseLayout(mode, { ...LOOK.layout, xaxis: { ...LOOK.xaxis, title }, yaxis: { ...LOOK.yaxis, title } }),
  };
}
