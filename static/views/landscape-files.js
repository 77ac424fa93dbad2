/** Open a landscape: files of this and of other programs become experiments that are done. */

import { LANDSCAPE_FILES, landscapeDrop } from '../components/landscape-drop.js';
import { experimentBadge } from '../components/badge.js';
import { element } from '../elements.js';
import { counted } from '../format.js';

const MOST_COMPARED = 6;

export default function mount(body, { api, navigate, announce }) {
  const opened = element('div.opened');
  const drop = landscapeDrop({ api, words: 'Drop files here, or ', onOpened: (items) => {
    if (items.length === 1) return navigate(`/experiments/${items[0].id}`);
    announce(`${counted(items.length, 'landscape')} opened`);
    opened.replaceChildren(...list(items));
  } });
  body.append(element('section.panel', {},
    element('h2', {}, 'Open a landscape'),
    element('p', {}, `${LANDSCAPE_FILES}. Several at once will do: plane and curve of one run become one landscape.`),
    drop.node,
    element('p.hint', {}, 'They appear in the list, open in the same view, and can be compared with your experiments. ',
      'The same without this page: ', element('code', {}, `valley import FILE ... --server ${location.origin}`), '.'),
    opened));
  return { unmount: () => drop.close() };
}

function list(items) {
  const ids = items.slice(0, MOST_COMPARED).map(({ id }) => id).join();
  return [
    element('h3', {}, `${counted(items.length, 'landscape')} opened`),
    element('ul.links', {}, items.map((item) =>
      element('li.row', {}, element('a', { href: `/experiments/${item.id}` }, item.name), experimentBadge(item)))),
    element('a.button', { href: `/compare?ids=${ids}` }, 'Compare them'),
  ];
}
