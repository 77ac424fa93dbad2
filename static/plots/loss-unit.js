/** The unit of the losses on the page: nats for entropies, or none where a loss has a unit of its own, as mse. */

import { style } from './theme.js';

const NATS = 'nats';
const PLACES = [
  [style.titles, 'loss'],
  [style.training.quantities.loss, 'title'],
  [style.fitting.loss, 'title'],
  [style.pareto.colorbar.title, 'text'],
].map(([owner, key]) => [owner, key, owner[key]]);
let shown = NATS;

/** Titles of figures say this unit from now on. */
export function showLossUnit(unit) {
  shown = unit;
  for (const [owner, key, text] of PLACES) owner[key] = unit === NATS ? text : text.replace(', nats', '');
}

/** "barrier" as "barrier, nats", or as it is. */
export const inLossUnit = (words) => (shown ? `${words}, ${shown}` : words);

/** "0.05" as "0.05 nats", or as it is. */
export const withLossUnit = (text) => (shown ? `${text} ${shown}` : text);

/** "nats", or nothing. */
export const lossUnit = () => shown;
