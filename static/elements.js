/**
 * Makes an element. Attributes that begin with `on` are listeners; false and null leave an attribute out;
 * text is never read as HTML.
 * @param {string} tag name, with optional classes: 'div.panel'
 * @param {Record<string, unknown>} [attributes]
 * @param {...(Node | string | number | null | undefined | false | Array)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.');
  const made = document.createElement(name);
  if (classes.length) made.className = classes.join(' ');
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else if (key === 'style') made.style.cssText = value;
    else if (key === 'class') made.className = [made.className, value].filter(Boolean).join(' ');
    else if (key in made && typeof value !== 'string' && key !== 'list') made[key] = value;
    else made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

const SHAPES = {
  check: 'M3 8.5 6.5 12 13 4.5',
  level: 'M1.500 4C2 12 4 12 5 12h6c1 0 3 0 3.500-8',
  slope: 'M1.500 3C2 13 5 13.500 8 11.500c3-2 5-4 6.500-7',
  arc: 'M2 12C4 3 12 3 14 12',
  split: 'M1.500 4C2 14 7.500 14 8 5c.5 9 6 9 6.500-1',
  question: 'M5.500 6a2.500 2.500 0 1 1 3.700 2.200C8.400 8.700 8 9.100 8 10M8 12.600v.1',
  play: 'M5 3.500v9l7-4.500z',
  pause: 'M5 3.500v9M11 3.500v9',
  wait: 'M8 4v4l2.500 2M8 1.800a6.200 6.200 0 1 0 .01 0',
  stop: 'M4.500 4.500h7v7h-7z',
  cross: 'M4 4l8 8M12 4l-8 8',
  sun: 'M8 5a3 3 0 1 0 .01 0M8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M3 13l1-1M12 4l1-1',
  moon: 'M13 9.500A5.500 5.500 0 1 1 6.500 3 4.500 4.500 0 0 0 13 9.500z',
  system: 'M2 3h12v8H2zM5.500 13.500h5',
  copy: 'M5.500 5.500h7v8h-7zM3.500 10.500v-8h7',
  plus: 'M8 3v10M3 8h10',
  bin: 'M3 4.500h10M6 4.500V3h4v1.500M4.500 4.500l.5 8.500h6l.5-8.500',
  again: 'M13 8a5 5 0 1 1-1.500-3.600M13 2v3h-3',
  pen: 'M3 13l.700-3L11 2.700l2.300 2.300L6 12.300z',
  restore: 'M2.500 6h7a3.500 3.500 0 1 1 0 7H6M5 3 2.500 6 5 9',
  bell: 'M4 11.500V7a4 4 0 0 1 8 0v4.500M2.500 11.500h11M7 14h2',
  file: 'M4 2h5l3 3v9H4zM9 2v3h3',
};

/** An icon, hidden from screen readers: put a text beside it. */
export function icon(name) {
  return drawing({ viewBox: '0 0 16 16', width: 16, height: 16, class: 'icon' }, { d: SHAPES[name] });
}

/** An SVG of one path, hidden from screen readers. */
export function drawing(frame, path) {
  const [outer, inner] = [['svg', { 'aria-hidden': 'true', ...frame }], ['path', path]].map(([tag, attributes]) => {
    const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  });
  outer.append(inner);
  return outer;
}

/** A name with a dot in its colour. */
export const colouredName = (colour, name) => element('span.named', {}, element('i.dot', { style: `background:${colour}` }), name);

let count = 0;

/** A unique id, to link labels and hints to fields. */
export const uniqueId = (prefix = 'id') => `${prefix}-${++count}`;
