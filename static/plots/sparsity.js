// Which layers of which minimum are sparse: kept (pale) and zero (filled) groups, one bar a layer and minimum.

import { baseLayout, escaped, style } from './theme.js';

const LOOK = style.sparsity;

/** A figure {data, layout} of the minima that have layers, first layer on top. */
export function sparsityFigure(minima, { mode, colours, narrow }) {
  const shown = minima.filter(({ layers }) => layers.length);
  const names = new Set(shown.flatMap(({ layers }) => layers.map(({ name }) => name)));
  const layout = baseLayout(mode, {
    ...LOOK.layout,
    height: LOOK.frame + names.size * (shown.length * LOOK.bar + LOOK.between),
    xaxis: { ...LOOK.xaxis, ...(narrow ? { dtick: 0.5 } : {}) },
    yaxis: LOOK.yaxis,
  });
  return { data: shown.flatMap(({ name, layers }) => bars(name, layers, colours[name])), layout };
}

function bars(name, layers, color) {
  const zero = layers.map(({ zero_groups, groups }) => (groups ? zero_groups / groups : 0));
  const shared = {
    type: 'bar',
    y: layers.map((layer) => escaped(layer.name)),
    orientation: 'h',
    name,
    legendgroup: name,
    offsetgroup: name,
    customdata: layers.map(({ zero_groups, groups }) => [zero_groups, groups]),
    hovertemplate: `<b>%{y}</b>, ${name}<br>%{customdata[0]} of %{customdata[1]} groups are zero<extra></extra>`,
  };
  const kept = {
    x: zero.map((share) => 1 - share),
    base: zero,
    marker: { color, opacity: LOOK.kept },
    text: layers.map(({ zero_groups, groups }) => `${zero_groups} of ${groups}`),
    showlegend: false,
    ...LOOK.text,
  };
  return [
    { ...shared, x: zero, marker: { color } },
    { ...shared, ...kept },
  ];
}
