/** One colour per minimum everywhere, and the colour maps of surfaces: the same as landscape/colours.py. */

const NAMED = { sgd: '#0072B2', altsdp: '#D55E00', control: '#009E73' };
const FURTHER = ['#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F'];
const VIRIDIS = ['#440154', '#482878', '#3e4989', '#31688e', '#26828e', '#1f9e89', '#35b779', '#6ece58', '#b5de2b', '#fde725'];

/**
 * @param {string[]} names of the minima, in the order of the spec
 * @returns {Record<string, string>}
 */
export function coloursOf(names) {
  const unique = [...new Set(names)];
  const spare = [...FURTHER, ...Object.keys(NAMED).filter((name) => !unique.includes(name)).map((name) => NAMED[name])];
  const others = unique.filter((name) => !(name in NAMED));
  return Object.fromEntries(unique.map((name) => [name, NAMED[name] ?? spare[others.indexOf(name) % spare.length]]));
}

const channels = VIRIDIS.map((colour) => [1, 3, 5].map((start) => parseInt(colour.slice(start, start + 2), 16)));

/** Viridis at a share in [0, 1], as three bytes. */
export function viridis(share) {
  const place = Math.min(1, Math.max(0, share)) * (channels.length - 1);
  const below = Math.min(channels.length - 2, Math.floor(place));
  return channels[below].map((value, index) => value + (place - below) * (channels[below + 1][index] - value));
}
