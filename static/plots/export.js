/** The picture on screen as one figure to take away: the surfaces above, the profile below; the paper's figure. */

import { loadPlotly } from '../plotly.js';
import { contourParts } from './contour.js';
import { profileParts } from './profile.js';
import { reliefFigure } from './surface3d.js';
import { baseLayout, inks } from './theme.js';

const WIDTH = 1100;
const PROFILE = 220;
const BETWEEN = 88;
const GAP = 0.14;
const RELIEF = 800;

/**
 * @param {Plane} plane
 * @param {object[]} views of the surfaces, one or two
 * @param {object[]} entries of the profile, as `profileFigure` takes them
 */
export function paperFigure(plane, views, entries, { mode, log }) {
  const across = views.map((_, index) => [(index * (1 + GAP)) / 2, (index * (1 + GAP)) / 2 + (1 - GAP) / 2]);
  const margin = { l: 64, r: 72, t: 40, b: entries.length ? 56 + 18 * entries.length : 56 };
  const inner = WIDTH - margin.l - margin.r;
  const above = Math.round(Math.min(620, Math.max(160, (((1 - GAP) / 2) * inner * plane.extent[1]) / plane.extent[0])));
  const total = above + (entries.length ? BETWEEN + PROFILE : 0);
  const layout = {
    ...baseLayout(mode),
    margin,
    width: WIDTH,
    height: total + margin.t + margin.b,
    annotations: [],
    images: [],
    paper_bgcolor: inks(mode).panel,
  };
  const data = [];
  views.forEach((view, index) => {
    const suffix = index ? String(index + 1) : '';
    const [left, right] = across[index];
    const bar = { x: right, xanchor: 'left', y: 1 - above / total, yanchor: 'bottom', len: above / total };
    const parts = contourParts(plane, { ...view, bar }, suffix);
    data.push(...parts.traces);
    layout.annotations.push(...parts.annotations, titleOf(view, left, 1, mode));
    layout.images.push(...parts.images);
    layout[`xaxis${suffix}`] = { ...parts.xaxis, domain: [left, right], anchor: `y${suffix}` };
    layout[`yaxis${suffix}`] = { ...parts.yaxis, domain: [1 - above / total, 1], anchor: `x${suffix}` };
  });
  if (entries.length) addProfile({ data, layout, total, entries, log, mode });
  return { data, layout };
}

function addProfile({ data, layout, total, entries, log, mode }) {
  [
    ['train', 'loss'],
    ['test', 'error'],
  ].forEach(([split, value], index) => {
    const suffix = String(index + 3);
    const parts = profileParts(entries, { split, value, log, mode }, suffix);
    data.push(...parts.traces.map((trace) => ({ ...trace, showlegend: index === 0 })));
    const left = (index * (1 + GAP)) / 2;
    layout[`xaxis${suffix}`] = { ...parts.xaxis, domain: [left, left + (1 - GAP) / 2], anchor: `y${suffix}` };
    layout[`yaxis${suffix}`] = { ...parts.yaxis, domain: [0, PROFILE / total], anchor: `x${suffix}` };
  });
  layout.showlegend = true;
  layout.legend = { ...layout.legend, orientation: 'h', x: 0, xanchor: 'left', y: -52 / total, yanchor: 'top' };
}

function titleOf({ split, value, log }, x, y, mode) {
  const text = value === 'loss' ? `${split} loss, nats${log ? ' (log scale)' : ''}` : `${split} error`;
  return {
    text,
    x,
    y,
    xref: 'paper',
    yref: 'paper',
    xanchor: 'left',
    yanchor: 'bottom',
    yshift: 8,
    showarrow: false,
    font: { size: 13, color: inks(mode).text },
  };
}

/** The reliefs on screen side by side, without the profile, since plotly.js draws scenes as bitmaps. */
export function reliefsToTake(plane, views, mode) {
  const layout = {
    ...baseLayout(mode),
    margin: { l: 0, r: 0, t: 40, b: 0 },
    width: RELIEF * views.length,
    height: 640,
    annotations: [],
    paper_bgcolor: inks(mode).panel,
  };
  const data = views.flatMap((view, index) => {
    const scene = `scene${index ? index + 1 : ''}`;
    const [left, right] = [index / views.length, (index + 0.88) / views.length];
    const figure = reliefFigure(plane, view);
    layout[scene] = { ...figure.layout.scene, domain: { x: [left, right], y: [0, 1] } };
    layout.annotations.push(titleOf(view, left + 0.02, 1, mode));
    return figure.data.map((trace) => ({
      ...trace,
      scene,
      ...(trace.colorbar ? { colorbar: { ...trace.colorbar, x: right, xanchor: 'left' } } : {}),
    }));
  });
  return { data, layout };
}

/** A figure as the bytes of a file. */
export async function rendered({ data, layout }, format) {
  const Plotly = await loadPlotly();
  const scale = format === 'png' ? 2 : 1;
  const url = await Plotly.toImage(
    { data, layout, config: { showSendToCloud: false } },
    { format, width: layout.width, height: layout.height, scale },
  );
  const [head, body] = [url.slice(0, url.indexOf(',')), url.slice(url.indexOf(',') + 1)];
  if (!head.endsWith(';base64')) return new Blob([decodeURIComponent(body)], { type: 'image/svg+xml' });
  return new Blob([Uint8Array.from(atob(body), (character) => character.charCodeAt(0))], { type: head.slice(5, -7) });
}

/** Let the browser save bytes under a name. */
export function save(blob, name) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
