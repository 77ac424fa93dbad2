// One colour per minimum in every figure and table, from the Okabe-Ito palette; the same rule as landscape/colours.py.

const NAMED = { sgd: '#0072B2', altsdp: '#D55E00', control: '#009E73' };
const FURTHER = ['#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F'];

/** Colours of whole experiments where several are compared: neither those of sgd, altsdp nor control. */
export const EXPERIMENTS = ['#CC79A7', '#E69F00', '#56B4E9', '#7F7F7F', '#0072B2', '#D55E00', '#009E73'];

/** Perceptually uniform maps: equal steps of the value look equally large. */
export const MAPS = { loss: 'Viridis', error: 'Cividis' };

/** A colour for each name: sgd, altsdp and control have theirs, the others take the rest in order. */
export function coloursOf(names) {
  const unique = [...new Set(names)];
  const unused = Object.entries(NAMED).filter(([name]) => !unique.includes(name));
  const spare = [...FURTHER, ...unused.map(([, colour]) => colour)];
  const others = unique.filter((name) => !(name in NAMED));
  return Object.fromEntries(unique.map((name) => [name, NAMED[name] ?? spare[others.indexOf(name) % spare.length]]));
}
