/** One colour per minimum everywhere: the same rule as landscape/colours.py. Viridis for small pictures. */

import style from './plots/style.json' with { type: 'json' };

const { named: NAMED, further: FURTHER } = style;
const VIRIDIS = style.maps.loss.stops.map((colour) => [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16)));

/** Colours of experiments that are compared: first those that no minimum has by its name. */
export const EXPERIMENTS = [...FURTHER, ...Object.values(NAMED)];

/**
 * A colour for each name: sgd, altsdp and control have theirs, the others take the rest in order.
 * @param {string[]} names of the minima, in the order of the spec
 * @returns {Record<string, string>}
 */
export function coloursOf(names) {
  const unique = [...new Set(names)];
  const spare = [...FURTHER, ...Object.keys(NAMED).filter((name) => !unique.includes(name)).map((name) => NAMED[name])];
  const others = unique.filter((name) => !(name in NAMED));
  return Object.fromEntries(unique.map((name) => [name, NAMED[name] ?? spare[others.indexOf(name) % spare.length]]));
}

/** Viridis at a share in [0, 1], as three bytes. */
export function viridis(share) {
  const place = Math.min(1, Math.max(0, share)) * (VIRIDIS.length - 1);
  const below = Math.min(VIRIDIS.length - 2, Math.floor(place));
  return VIRIDIS[below].map((value, index) => value + (place - below) * (VIRIDIS[below + 1][index] - value));
}
