// How curves were fitted: the mean loss over each curve and the way of its bends, epoch by epoch.

import { style } from './theme.js';
import { trainingFigure } from './training.js';

/** A figure {data, layout}; `fits`: [{label, epochs: the columns of a fit, color}]. */
export function fittingFigure(fits, view) {
  const { loss, bends } = style.fitting;
  const columns = [...new Set(fits.flatMap(({ epochs }) => Object.keys(epochs)))].filter((name) => name.startsWith('bend'));
  const many = columns.length > 1;
  const named = Object.fromEntries(columns.map((name) => [many ? `bend ${name.slice(4)}` : '', name]));
  const looks = { loss, bends: { ...bends, columns: named } };
  return trainingFigure(fits, { ...view, quantities: Object.keys(looks), looks });
}
