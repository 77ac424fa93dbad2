const SVG = 'http://www.w3.org/2000/svg';
const DASHES = { solid: '', dash: '7 5', dot: '2 3.5' };

/** A short sample of a plotted line, for legends. */
export function legendLine({ color, width, dash }) {
  const drawing = document.createElementNS(SVG, 'svg');
  drawing.setAttribute('viewBox', '0 0 28 8');
  drawing.setAttribute('class', 'stroke');
  drawing.setAttribute('aria-hidden', 'true');
  const line = document.createElementNS(SVG, 'path');
  const look = { d: 'M0 4H28', fill: 'none', stroke: color, 'stroke-width': width, 'stroke-dasharray': DASHES[dash] };
  for (const [key, value] of Object.entries(look)) line.setAttribute(key, value);
  drawing.append(line);
  return drawing;
}
