/** The picture on screen as one figure to take away: the surfaces above, the profile below; the paper's figure. */

import { loadPlotly } from '../plotly.js';
import { stretchOf } from './axes.js';
import { contourParts } from './contour.js';
import { profileParts } from './profile.js';
import { surfaceFigure } from './surface3d.js';
import { baseLayout, heading, quantityTitle, style } from './theme.js';

const LOOK = style.paper;
const RELIEF = 800;

/**
 * @param {Plane} plane
 * @param {object[]} views of the surfaces, one or two
 * @param {object[]} entries of the profile, as `profileFigure` takes them
 */
export function paperFigure(plane, views, entries, { mode, log }) {
  const half = (1 - LOOK.gap) / 2;
  const domains = [0, 1].map((index) => [index * (half + LOOK.gap), index * (half + LOOK.gap) + half]);
  const margin = { ...LOOK.margin, b: LOOK.foot + LOOK.legend_line * entries.length };
  const inner = LOOK.width - margin.l - margin.r;
  const wanted = (half * inner * plane.extent[1] * stretchOf(plane.extent)) / plane.extent[0];
  const above = Math.round(Math.min(LOOK.highest, Math.max(LOOK.lowest, wanted)));
  const total = above + (entries.length ? LOOK.between + LOOK.profile : 0);
  const layout = baseLayout(mode, { margin, width: LOOK.width, annotations: [], images: [], shapes: [] });
  Object.assign(layout, { height: total + margin.t + margin.b, paper_bgcolor: style.inks[mode].panel });
  const data = [];
  const place = ({ traces, xaxis, yaxis }, suffix, across, up) => {
    data.push(...traces);
    layout[`xaxis${suffix}`] = { ...xaxis, domain: across, anchor: `y${suffix}` };
    layout[`yaxis${suffix}`] = { ...yaxis, domain: up, anchor: `x${suffix}` };
  };
  let room = 0;
  views.forEach((view, index) => {
    const [left, right] = domains[index];
    const bottom = 1 - above / total;
    const bar = { x: right, xanchor: 'left', y: bottom, yanchor: 'bottom', len: above / total };
    const suffix = index ? '2' : '';
    const parts = contourParts(plane, { ...view, bar, left }, suffix);
    place(parts, suffix, [left, right], [bottom, 1]);
    const title = headingOf(view, left, mode);
    layout.annotations.push(...parts.annotations, { ...title, yshift: title.yshift + parts.room });
    layout.images.push(...parts.images);
    layout.shapes.push(...parts.shapes);
    room = Math.max(room, parts.room);
  });
  layout.margin = { ...margin, t: margin.t + room };
  layout.height += room;
  if (!entries.length) return { data, layout };
  [['train', 'loss'], ['test', 'error']].forEach(([split, value], index) => {
    const suffix = String(index + 3);
    const parts = profileParts(entries, { split, value, log, hover: views[0].hover }, suffix);
    place(parts, suffix, domains[index], [0, LOOK.profile / total]);
  });
  return { data, layout: { ...layout, showlegend: true, legend: { ...LOOK.legend, y: LOOK.legend_place / total } } };
}

function headingOf({ split, value, log }, x, mode) {
  return heading(quantityTitle(split, value, log), x, 1, mode);
}

/** The surfaces on screen in three dimensions side by side, without the profile, since plotly.js draws scenes as bitmaps. */
export function surfacesFigure(plane, views, mode) {
  const layout = baseLayout(mode, {
    margin: { l: 0, r: 0, t: 40, b: 0 },
    width: RELIEF * views.length,
    height: 640,
    annotations: [],
    paper_bgcolor: style.inks[mode].panel,
  });
  const data = views.flatMap((view, index) => {
    const scene = `scene${index ? index + 1 : ''}`;
    const [left, right] = [index / views.length, (index + 0.88) / views.length];
    const figure = surfaceFigure(plane, view);
    layout[scene] = { ...figure.layout.scene, domain: { x: [left, right], y: [0, 1] } };
    layout.annotations.push(headingOf(view, left + 0.02, mode));
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
