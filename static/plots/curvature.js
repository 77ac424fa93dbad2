// The curvature at minima: spectrum, its growth in training, direction factors, and what the theorem predicts of them.
//
// A summary is what /api/experiments/{id}/curvature has of one minimum.

import { baseLayout, escaped, logAxis, style } from './theme.js';
import { trainingFigure } from './training.js';

const LOOK = style.curvature;

/** The density of all eigenvalues, with the largest and the most negative ones as ticks. `minima`: [{name, color, summary}] */
export function spectrumFigure(minima, { mode }) {
  const densities = minima.flatMap(({ summary }) => summary.density?.y ?? []).filter((value) => value > 0);
  const foot = densities.length ? Math.min(...densities) / 3 : 1;
  const data = minima.flatMap(({ name, color, summary }, index) => [
    ...(summary.density ? [line({
      name, color, x: summary.density.x, y: summary.density.y, hover: '%{y:.3g} at eigenvalue %{x:.3g}', width: LOOK.spectrum.width,
    })] : []),
    {
      type: 'scatter',
      mode: 'markers',
      x: [...summary.eigenvalues, ...summary.lowest],
      y: [...summary.eigenvalues, ...summary.lowest].map(() => foot / 2.4 ** index),
      marker: { ...LOOK.spectrum.ticks, color },
      name,
      hovertemplate: `%{x:.4g} ${escaped(name)}<extra></extra>`,
    },
  ]);
  return figure(data, mode, {
    x: 'eigenvalue',
    y: 'density',
    yaxis: { ...logAxis([densities, [foot / 2.4 ** minima.length]]), exponentformat: 'power' },
  });
}

/** Largest eigenvalue and trace after the epochs of which snapshots were kept. */
export function growthFigure(minima, { mode, room, narrow }) {
  const runs = minima.map(({ name, color, summary }) => ({ label: name, color, epochs: summary.epochs }));
  return trainingFigure(runs, { mode, room, narrow, log: true, quantities: Object.keys(LOOK.growth), looks: LOOK.growth });
}

/** The direction factor of every group, by layer. */
export function factorsFigure(minima, { mode }) {
  // A group that is zero has no direction.
  const there = ({ norms }) => (_, group) => norms[group] > 0;
  const data = minima.map(({ name, color, summary: { directions } }) => ({
    type: 'box',
    x: directions.layers.filter(there(directions)),
    y: directions.factors.filter(there(directions)),
    name,
    boxpoints: 'all',
    pointpos: 0,
    jitter: 0.5,
    line: { color, width: 1 },
    fillcolor: 'rgba(0,0,0,0)',
    marker: { color, ...LOOK.factors },
    hovertemplate: `%{y:.3f} %{x}, ${escaped(name)}<extra></extra>`,
  }));
  return figure(data, mode, {
    x: 'layer', y: 'direction factor s', xaxis: { type: 'category' }, more: { boxmode: 'group', ...(data.length > 1 ? named() : {}) },
  });
}

/** The median, smallest and largest direction factor over the cut. */
export function cutsFigure(minima, { mode }) {
  const data = minima.flatMap(({ name, color, summary: { directions } }) =>
    ['median', 'smallest', 'largest'].map((which) => line({
      name: `${name}, ${which}`,
      color,
      x: directions.spread.map(({ cut }) => cut),
      y: directions.spread.map((row) => row[which]),
      text: directions.spread.map(({ removed }) => `${removed} directions above the cut`),
      hover: '%{y:.3f}, %{text} %{x:.3g}',
      width: LOOK.cuts.width,
      dash: which === 'median' ? 'solid' : LOOK.cuts.dash,
      mode: 'lines+markers',
    })));
  return figure(data, mode, { x: 'cut (eigenvalue)', y: 'direction factor s', xaxis: { type: 'log', dtick: 1 } });
}

/** Predicted against measured group norms of one run, a colour for each layer; open circles: s = 1. */
export function theoremFigure(trial, { mode }) {
  const layers = [...new Set(trial.layers)];
  const most = Math.max(...trial.measured, ...trial.theorem, ...trial.null);
  const points = (x, y, more) => ({ type: 'scatter', mode: 'markers', x, y, ...more });
  const hover = (name) => `${escaped(name)}<br>predicted %{x:.3g}, measured %{y:.3g}<extra></extra>`;
  const data = [
    { type: 'scatter', mode: 'lines', x: [0, most], y: [0, most], line: LOOK.theorem.equal, hoverinfo: 'skip', showlegend: false },
    points(trial.null, trial.measured, { name: 's = 1', marker: LOOK.theorem.null, hovertemplate: hover('s = 1') }),
    ...layers.map((layer, index) => {
      const own = (list) => list.filter((_, group) => trial.layers[group] === layer);
      const color = LOOK.layers[index % LOOK.layers.length];
      return points(own(trial.theorem), own(trial.measured), {
        name: escaped(layer), marker: { ...LOOK.theorem.marker, color }, hovertemplate: hover(layer),
      });
    }),
  ];
  return figure(data, mode, { x: 'predicted norm of a group', y: 'measured norm', more: named() });
}

/** The train loss at equal distances from a minimum along three directions. */
export function flatnessFigure({ distances, losses }, { mode }) {
  const data = Object.entries(LOOK.losses).map(([key, { name, color, dash }]) => line({
    name, color, dash, x: distances, y: losses[key], hover: `%{y:.3g} nats at distance %{x:.3g}`, width: LOOK.spectrum.width, mode: 'lines+markers',
  }));
  return figure(data, mode, {
    x: 'distance in weight space', y: style.titles.loss, yaxis: logAxis(Object.keys(LOOK.losses).map((key) => losses[key])), more: named(),
  });
}

const named = () => ({ showlegend: true, legend: LOOK.legend, margin: { ...LOOK.layout.margin, t: 44 } });

function line({ name, color, x, y, hover, width, dash = 'solid', mode = 'lines', text }) {
  const label = escaped(name);
  return {
    type: 'scatter', mode, x, y, text, name: label, connectgaps: false, line: { color, width, dash }, marker: { color, size: 4 },
    hovertemplate: `${hover} ${label}<extra></extra>`,
  };
}

function figure(data, mode, { x, y, xaxis = {}, yaxis = {}, more = {} }) {
  const axes = { xaxis: { title: { text: x }, ...xaxis }, yaxis: { title: { text: y }, ...yaxis } };
  return { data, layout: baseLayout(mode, { ...LOOK.layout, height: LOOK.height, ...axes, ...more }) };
}
