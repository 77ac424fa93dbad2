/** The caption of a surface, in the words of the report. */

import { isFar } from '../plots/axes.js';
import { estimateSentence } from '../plots/estimates.js';
import { belongs, curvesOf, shownPoints } from '../plots/labels.js';
import { significant } from '../plots/numbers.js';
import { isBend } from '../plots/sampling.js';
import { style } from '../plots/theme.js';

const MOST_NAMES = 5;

/** @param {{judged?: boolean, slopes?: boolean}} [drawn] whether the tolerance contour is drawn, and that of what is level */
export function captionOf(plane, { judged = false, slopes = false } = {}) {
  const curves = Object.keys(curvesOf(plane));
  const shown = Object.keys(shownPoints(plane));
  const sentences = [spannedBy(plane)];
  if (curves.length) sentences.push(curves.join() === 'curve' ? 'White: the fitted curve.' : `White: the fitted curve${curves.length > 1 ? 's' : ''} ${listed(curves)}.`);
  if (plane.defining.filter((name) => !isBend(name)).length > 1) sentences.push('Dashed: straight lines.');
  if (judged) sentences.push(style.titles.tolerance);
  if (slopes) sentences.push(style.titles.floor);
  if (curves.length < Object.keys(plane.paths).length)
    sentences.push(`Dotted chains: training, snapshot by snapshot${plane.kind === 'principal' ? '' : ', projected on the plane'}.`);
  const farthest = Math.max(0, ...Object.values(plane.offsets).flatMap((values) => [...values]));
  if (farthest > 0) sentences.push(`Snapshots lie up to ${significant(farthest)} off the plane.`);
  const hollow = shown
    .filter((name) => plane.isProjected(name))
    .map((name) => `${name} (${significant(plane.distances[name])} off the plane)`);
  if (hollow.length > MOST_NAMES) sentences.push(`Hollow: projected, ${hollow.length} points off the plane.`);
  else if (hollow.length) sentences.push(`Hollow: projected, ${listed(hollow)}.`);
  const outside = Object.keys(plane.points).filter(
    (name) => !shown.includes(name) && belongs(name, plane) && !isFar(plane, name),
  );
  if (outside.length > MOST_NAMES) sentences.push(`Outside the frame: ${outside.length} points.`);
  else if (outside.length) sentences.push(`Outside the frame: ${listed(outside)}.`);
  const estimate = estimateSentence(plane);
  if (estimate) sentences.push(estimate);
  if (!plane.complete)
    sentences.push(
      `Hatched: not computed yet (${Math.floor((100 * plane.computed) / plane.done.length)} % of the grid is).`,
    );
  if (plane.note) sentences.push(`${plane.note[0].toUpperCase()}${plane.note.slice(1).replace(/\.$/, '')}.`);
  return sentences.join(' ');
}

function spannedBy(plane) {
  const grid = `${plane.columns} by ${plane.rows} points`;
  if (plane.axes.length) return `Measured directions around ${listed(plane.defining) || 'one minimum'}, ${grid}.`;
  if (plane.kind === 'around') return `Random directions around ${listed(plane.defining) || 'one minimum'}, ${grid}.`;
  if (plane.kind === 'principal') return `Principal directions of training, ${grid}.`;
  return plane.defining.length ? `The plane through ${listed(plane.defining)}, ${grid}.` : `A plane of ${grid}.`;
}

export function listed(names) {
  return names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
