// Barrier and rise between a run and its forks over the epoch of the fork: means over seeds, and single seeds.

import { coloursOf } from '../colours.js';
import { baseLayout, escaped, style } from './theme.js';

const LOOK = style.forks;

/** A figure {data, layout} with a panel for each quantity; a bar spans the seeds, or is the interval of the only one. */
export function forksFigure(found, { mode }) {
  const paint = coloursOf(found.curves.map(({ kind }) => kind));
  const ticks = epochTicks(found);
  const layout = baseLayout(mode, { ...LOOK.layout, shapes: levels(found) });
  for (const { axis, xaxis, yaxis } of LOOK.panels) {
    layout[`xaxis${axis}`] = { ...LOOK.xaxis, ...ticks, ...xaxis };
    layout[`yaxis${axis}`] = { ...LOOK.yaxis, ...yaxis };
  }
  return { data: LOOK.panels.flatMap((panel) => found.curves.flatMap((curve) => traces(curve, panel, paint[curve.kind]))), layout };
}

/** Where an epoch stands: early ones, in which most changes, have more room. */
const placeOf = (epoch) => Math.log2(1 + epoch);

function epochTicks({ curves }) {
  const epochs = [...new Set(curves.flatMap(({ points }) => points.map(({ epoch }) => epoch)))].sort((a, b) => a - b);
  return { tickvals: epochs.map(placeOf), ticktext: epochs.map(String) };
}

/** Levels to compare with: the tolerance, and the barrier to another initialisation. */
function levels({ tolerance, unrelated }) {
  const known = [[tolerance, LOOK.tolerance]];
  if (Number.isFinite(unrelated?.value)) known.push([unrelated.value, LOOK.unrelated]);
  return known.map(([value, line]) => ({ type: 'line', xref: 'x domain', x0: 0, x1: 1, yref: 'y', y0: value, y1: value, line }));
}

function traces({ kind, points }, { quantity, axis }, color) {
  const axes = { xaxis: `x${axis}`, yaxis: `y${axis}` };
  const label = escaped(kind);
  const known = points.filter((point) => point[quantity]);
  const single = points.filter(({ forks }) => forks.length > 1)
    .flatMap(({ epoch, forks }) => forks.filter((fork) => Number.isFinite(fork[quantity]?.value)).map((fork) => ({ epoch, ...fork })));
  const mean = {
    type: 'scatter',
    mode: 'lines+markers',
    x: known.map(({ epoch }) => placeOf(epoch)),
    y: known.map((point) => point[quantity].mean),
    error_y: {
      ...LOOK.bars,
      type: 'data',
      symmetric: false,
      array: known.map((point) => point[quantity].high - point[quantity].mean),
      arrayminus: known.map((point) => point[quantity].mean - point[quantity].low),
    },
    customdata: known.map(({ epoch }) => epoch),
    name: label,
    legendgroup: label,
    showlegend: quantity === 'barrier',
    line: { ...LOOK.line, color },
    marker: { ...LOOK.marker, color },
    hovertemplate: `<b>${label}</b>, fork at epoch %{customdata}<br>${quantity} %{y:.3g} nats<extra></extra>`,
    ...axes,
  };
  if (!single.length) return [mean];
  return [mean, {
    type: 'scatter',
    mode: 'markers',
    x: single.map(({ epoch }) => placeOf(epoch)),
    y: single.map((fork) => fork[quantity].value),
    text: single.map(({ name }) => escaped(name)),
    legendgroup: label,
    showlegend: false,
    marker: { ...LOOK.single, color },
    hovertemplate: `%{text}<br>${quantity} %{y:.3g} nats<extra></extra>`,
    ...axes,
  }];
}
