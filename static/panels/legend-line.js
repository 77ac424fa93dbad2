import { drawing } from '../elements.js';

const DASHES = { solid: '', dash: '7 5', dot: '2 3.5' };

/** A short sample of a plotted line, for legends. */
export function legendLine({ color, width, dash }) {
  const look = { fill: 'none', stroke: color, 'stroke-width': width, 'stroke-dasharray': DASHES[dash] };
  return drawing({ viewBox: '0 0 28 8', class: 'stroke' }, { d: 'M0 4H28', ...look });
}
