// Which layers of which minimum are sparse: kept (pale) and zero (filled) groups, one bar a layer and minimum.

import { axis, baseLayout, inks } from './theme.js';

const BAR = 18;

/** A figure {data, layout} of the minima that have layers, first layer on top. */
export function sparsityFigure(minima, { mode, colours, narrow }) {
  const shown = minima.filter(({ layers }) => layers.length);
  const names = [...new Set(shown.flatMap(({ layers }) => layers.map(({ name }) => name)))];
  const data = shown.flatMap(({ name, layers }) => bars(name, layers, colours[name], inks(mode).muted));
  const ticks = { autorange: 'reversed', showgrid: false, ticks: '', type: 'category' };
  const layout = {
    ...baseLayout(mode),
    margin: { l: 56, r: 24, t: 4, b: 44 },
    barmode: 'group',
    bargap: 0.28,
    bargroupgap: 0.12,
    height: 52 + names.length * (shown.length * BAR + 14),
    hovermode: 'closest',
    dragmode: false,
    xaxis: axis(mode, 'groups that are zero', { range: [0, 1], tickformat: '.0%', dtick: narrow ? 0.5 : 0.25 }),
    yaxis: axis(mode, '', ticks),
  };
  return { data, layout };
}

function bars(name, layers, color, ink) {
  const zero = layers.map(({ zero_groups, groups }) => (groups ? zero_groups / groups : 0));
  const shared = {
    type: 'bar',
    y: layers.map((layer) => layer.name),
    orientation: 'h',
    offsetgroup: name,
    customdata: layers.map(({ zero_groups, groups }) => [zero_groups, groups]),
    hovertemplate: `<b>%{y}</b>, ${name}<br>%{customdata[0]} of %{customdata[1]} groups are zero<extra></extra>`,
  };
  const kept = {
    x: zero.map((share) => 1 - share),
    base: zero,
    marker: { color, opacity: 0.18 },
    text: layers.map(({ zero_groups, groups }) => `${zero_groups} of ${groups}`),
    textposition: 'inside',
    insidetextanchor: 'end',
    constraintext: 'none',
    textfont: { size: 10, color: ink },
  };
  return [
    { ...shared, x: zero, marker: { color } },
    { ...shared, ...kept },
  ];
}
