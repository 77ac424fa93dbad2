import { galleryCards } from '../components/gallery-card.js';
import { element, icon } from '../elements.js';

/** The empty list: a sentence, a button that runs the demo, a picture of its result, and the gallery. */
export function emptyList(api, runDemo) {
  const base = new URL('../', import.meta.url);
  const button = element('button.primary', { type: 'button', onclick: async () => {
    button.disabled = true;
    await runDemo();
    button.disabled = false;
  } }, icon('play'), 'Run the demo');
  const picture = (theme, name) => element('img', {
    class: `on-${theme}`,
    src: new URL(name, base).href,
    alt: 'Contours of the train loss around two networks that lie in one valley, and a third in another',
    width: 654,
    height: 601,
    loading: 'lazy',
  });
  const gallery = element('ul.gallery', { 'aria-label': 'Gallery' });
  galleryCards(api).then((cards) => gallery.replaceChildren(...cards));
  return element('div.first-screen', {}, element('section.welcome.panel', {},
    element('div', {},
      element('p.lead', {}, 'Train two networks, map the loss around them, and see whether they lie in one flat valley.'),
      element('p.soft', {}, 'The demo takes about a minute and needs no download.'),
      element('div.row', {}, button, element('a.button', { href: '/new' }, 'Set up your own'), element('a.button', { href: '/new?way=landscape' }, 'Open a landscape'))),
    element('figure', {}, picture('light', 'demo-light.webp'), picture('dark', 'demo-dark.webp'))),
  element('h2', {}, 'Or explore finished landscapes'),
  gallery);
}
