/** One colour per minimum everywhere: the same rule as landscape/colours.py. Viridis for small pictures. */

const NAMED = { sgd: '#0072B2', altsdp: '#D55E00', control: '#009E73' };
const FURTHER = ['#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F'];
const VIRIDIS = ['440154', '482878', '3e4989', '31688e', '26828e', '1f9e89', '35b779', '6ece58', 'b5de2b', 'fde725'].map(
  (colour) => [0, 2, 4].map((start) => parseInt(colour.slice(start, start + 2), 16)),
);

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
