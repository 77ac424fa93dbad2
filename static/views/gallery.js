/** The gallery: finished landscapes that ship with the program, to explore and to compare with experiments. */

import { galleryCard } from '../components/gallery-card.js';
import { element } from '../elements.js';

export default async function mount(root, { api, urlState, navigate }) {
  document.title = 'Gallery · Valleyscope';
  const { items } = await api.get('/api/gallery');
  const chosen = new Set((urlState.get().ids ?? '').split(',').filter(Boolean));
  const compare = element('button', { type: 'button', onclick: () => navigate('/compare', { ids: [...chosen].join(',') }) });
  const more = element('a.button', { title: 'Choose experiments to compare with these' }, 'Add experiments');
  const cards = items.map((item) => galleryCard(api, item, { tick: tickFor(item), heading: 'h2' }));
  root.append(element('div.page', {},
    element('div.head', {}, element('h1', { tabIndex: -1 }, 'Gallery'), more, compare),
    element('p.soft', {}, 'Finished landscapes that ship with the program. Explore them, compare them with your experiments, or vary them to run your own.'),
    element('ul.gallery', { 'aria-label': 'Gallery' }, cards)));
  show();
  return {};

  function tickFor({ id, name }) {
    const box = element('input', { type: 'checkbox', checked: chosen.has(id), 'aria-label': `Compare ${name}`, onchange: () => {
      if (box.checked) chosen.add(id);
      else chosen.delete(id);
      urlState.set({ ids: [...chosen].join(',') });
      show();
    } });
    return element('label.gallery-tick', {}, box, 'compare');
  }

  function show() {
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size ? `Compare ${chosen.size}` : 'Compare';
    compare.title = chosen.size < 2 ? 'Select two or more' : '';
    more.hidden = chosen.size === 0;
    more.href = `/?ids=${[...chosen].join(',')}`;
  }
}
